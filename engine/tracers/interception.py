"""Where the tracers listen: below autograd, above the backends, for the traced ops only.

May import torch. Python kernels at the BackendSelect dispatch key, which every call of an op
passes whoever makes it: Python, DDP's C++ reducer, SyncBatchNorm's autograd function, FSDP,
functional collectives. Unlike a TorchDispatchMode this costs other ops nothing and never sees a
tensor subclass such as DTensor, which has been taken apart by then.
"""

import functools
from collections.abc import Callable
from datetime import timedelta

import torch
from torch import Tensor
from torch._C._distributed_c10d import Work

from engine.tracers.c10d import C10D_OPS, Op
from engine.tracers.compiling import never_compiled

Redispatch = Callable[[], object]
Kernel = Callable[..., object]


class Interception:
    """The registered kernels: they only pass calls on until the listeners are set."""

    def __init__(self) -> None:
        self.on_collective: Callable[[Op, tuple[object, ...], Redispatch], object] | None = None
        self.on_gather_stats: Callable[[Tensor, Tensor, float], None] | None = None
        """Called with mean [C], invstd [C] and eps."""
        self.on_wait: Callable[[Work | Tensor], None] | None = None
        """Called when a wait is over, with the Work or the functional output waited for."""
        # A Library deregisters its kernels when it is freed: these live as long as this object.
        self._libraries: list[torch.library.Library] = []

    def register(self) -> None:
        """Register a kernel for every traced op, and watch Work.wait."""
        self._implement("c10d", {op.name: self._collective(op) for op in C10D_OPS})
        self._implement("aten", {"batch_norm_gather_stats_with_counts": self._gather_stats})
        self._implement("_c10d_functional", {"wait_tensor": self._wait_tensor})
        self._watch_waits()

    def _implement(self, namespace: str, kernels: dict[str, Callable[[Kernel], Kernel]]) -> None:
        # torch leaves Library untyped.
        library = torch.library.Library(namespace, "IMPL")  # type: ignore[no-untyped-call]
        self._libraries.append(library)
        key = torch._C.DispatchKey.BackendSelect
        below = torch._C._dispatch_keyset_full_after(key)
        for name, make in kernels.items():
            op = getattr(getattr(torch.ops, namespace), name).default
            kernel = make(_redispatch(op, below))
            library.impl(name, kernel, key.name, with_keyset=True)  # type: ignore[no-untyped-call]

    def _collective(self, op: Op) -> Callable[[Kernel], Kernel]:
        def make(redispatch: Kernel) -> Kernel:
            @never_compiled
            def kernel(keyset: torch._C.DispatchKeySet, *args: object) -> object:
                if self.on_collective is None:
                    return redispatch(keyset, *args)
                return self.on_collective(op, args, functools.partial(redispatch, keyset, *args))

            return kernel

        return make

    def _gather_stats(self, redispatch: Kernel) -> Kernel:
        @never_compiled
        def kernel(keyset: torch._C.DispatchKeySet, *args: object) -> object:
            answer = redispatch(keyset, *args)
            match answer, args:
                case (Tensor() as mean, Tensor() as invstd), (*_, float(eps), Tensor()):
                    if self.on_gather_stats is not None:
                        self.on_gather_stats(mean, invstd, eps)
            return answer

        return kernel

    def _wait_tensor(self, redispatch: Kernel) -> Kernel:
        @never_compiled
        def kernel(keyset: torch._C.DispatchKeySet, tensor: Tensor) -> object:
            try:
                return redispatch(keyset, tensor)
            finally:
                if self.on_wait is not None:
                    self.on_wait(tensor)

        return kernel

    def _watch_waits(self) -> None:
        stock, no_timeout = Work.wait, timedelta(0)

        @functools.wraps(stock)
        @never_compiled
        def wait(self_: Work, timeout: timedelta = no_timeout) -> bool:
            try:
                return stock(self_, timeout)
            finally:
                if self.on_wait is not None:
                    self.on_wait(self_)

        Work.wait = wait  # type: ignore[method-assign, assignment]


def _redispatch(op: torch._ops.OpOverload, below: torch._C.DispatchKeySet) -> Kernel:
    def redispatch(keyset: torch._C.DispatchKeySet, *args: object) -> object:
        return op.redispatch(keyset & below, *args)

    return redispatch


def prepare() -> Interception:
    """Register the tracers' kernels in this process; nothing is reported before `install`."""
    interception = Interception()
    interception.register()
    return interception
