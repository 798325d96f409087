"""Process groups on CPU ranks: nccl becomes gloo, and destroyed groups stay referenced.

May import torch and engine.torch_cpu.
"""

import functools
import inspect
import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from engine.torch_cpu.notes import Notes

P = ParamSpec("P")
R = TypeVar("R")
_NUM_NEWEST = 4


class KeptGroups:
    """Process groups that the program destroyed and that must not be freed any more.

    Freeing a ProcessGroupGloo joins a thread that may want the GIL. Python's own references let go
    of the GIL for that. The reducer of a DistributedDataParallel does not, and the rank hangs at
    its exit where that is the last to go (pytorch#56297, #190489): a group that one was made with
    is kept for good. Of the others the newest few are, since a group costs threads and descriptors
    and a program may make and destroy any number of them.
    """

    def __init__(self) -> None:
        self.groups: list[dist.ProcessGroup] = []
        """Those of reducers."""
        self._newest: deque[dist.ProcessGroup] = deque(maxlen=_NUM_NEWEST)
        self._of_reducers: weakref.WeakSet[dist.ProcessGroup] = weakref.WeakSet()
        self._is_keeping = False

    def begin(self) -> None:
        """Keep from now on; the warm parent's own rehearsals need nothing kept."""
        self._is_keeping = True

    def install(self) -> None:
        """Stand in for every destroy_process_group, and see what DDP is made with."""
        replace_everywhere("destroy_process_group", self._keeping)
        of_reducers, stock = (
            self._of_reducers,
            DistributedDataParallel._passing_sync_batchnorm_handle,
        )

        @functools.wraps(stock)
        def passing(self: DistributedDataParallel, module: nn.Module) -> None:
            # DDP's constructor calls this last, after it has made its reducer.
            of_reducers.add(self.process_group)
            stock(self, module)  # type: ignore[no-untyped-call]  # torch leaves it untyped

        DistributedDataParallel._passing_sync_batchnorm_handle = passing  # type: ignore[method-assign]

    def _keeping(self, stock: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(stock)
        def destroy_process_group(*args: P.args, **kwargs: P.kwargs) -> R:
            if self._is_keeping:
                self._keep()
            return stock(*args, **kwargs)

        return destroy_process_group

    def _keep(self) -> None:
        for group in distributed_c10d._world.pg_map:
            if group in self._of_reducers:
                if group not in self.groups:
                    self.groups.append(group)
            elif group not in self._newest:
                self._newest.append(group)


def adapt_backends(notes: Notes) -> None:
    """Let init_process_group and new_group take gloo where the program names nccl."""

    def adapt(stock: Callable[P, R]) -> Callable[P, R]:
        return _without_nccl(stock, notes)

    replace_everywhere("init_process_group", adapt)
    replace_everywhere("new_group", adapt)


def _without_nccl(stock: Callable[P, R], notes: Notes) -> Callable[P, R]:
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def adapted(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # wrong arguments: stock says which
            return stock(*args, **kwargs)
        backend = bound.arguments.get("backend")
        if not isinstance(backend, str) or "nccl" not in backend.lower():
            return stock(*args, **kwargs)
        notes.add("nccl-to-gloo", {"backend": backend})
        bound.arguments["backend"] = "gloo"
        return stock(*bound.args, **bound.kwargs)

    return adapted


def replace_everywhere(name: str, wrap: Callable[[Callable[P, R]], Callable[P, R]]) -> None:
    """Replace the function `name` of torch.distributed in every torch module that holds it."""
    stock = vars(distributed_c10d)[name]
    wrapped = wrap(stock)
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "torch" and vars(module).get(name) is stock:
            setattr(module, name, wrapped)
