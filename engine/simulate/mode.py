"""Tensors without data for a whole program: torch's FakeTensorMode, and what a learner adds to it.

May import torch, engine.tracers.c10d and engine.simulate. Every tensor of the program has shape,
strides, dtype and device "cpu", and a storage of its nominal size that no memory stands behind.
Ops run their meta kernels. On top of that: values that depend on nothing simulated are known,
collectives reach the tracers, and reading anything else is refused.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, MappingProxyType
from typing import TypeVar

import torch
from torch import Tensor
from torch._C._distributed_c10d import ProcessGroup
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager
from torch.nn.modules._functions import SyncBatchNorm
from torch.utils import _pytree as pytree

from engine.simulate.known import MAX_NUM_INTEGERS, KnownValues
from engine.simulate.ops import OpFacts, Ops, tensors_in
from engine.tracers.c10d import C10D_OPS, Op, output_tensors

Given = TypeVar("Given")
_PLAIN = (Tensor, torch.nn.Parameter, FakeTensor)
_CPU = torch.device("cpu")
_KEYS_OF_REAL = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_NOTHING: Mapping[str, object] = MappingProxyType({})
_COLLECTIVES = MappingProxyType({op.name: op for op in C10D_OPS})
_SYNC_BATCH_NORM = SyncBatchNorm.forward.__code__


class SimulationMode(FakeTensorMode):  # type: ignore[no-untyped-call]  # torch has no type for it
    """The mode under which a simulated rank runs its program."""

    stands_for_memory = True
    """Tells the memory tracer that the storages of this mode's tensors are what a rank holds."""

    def __init__(self, refuse: Callable[[], RuntimeError]) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.known = KnownValues()
        self.has_real_integers = False
        """Set while torch's own C++ code makes integers that it reads itself."""
        self._refuse = refuse
        self._ops = Ops()

    def __deepcopy__(self, memo: object) -> "SimulationMode":
        return self  # every tensor refers to it, and is copied with all that it refers to

    def dispatch(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = _NOTHING,
    ) -> object:
        """Run one op on simulated tensors; real ones among themselves stay real."""
        if func is torch.ops.prim.device.default and isinstance(args[0], FakeTensor):
            return args[0].fake_device
        if any(t not in _PLAIN for t in types) or not isinstance(func, OpOverload):
            return super().dispatch(func, types, args, kwargs)
        facts = self._ops.facts(func)
        tensors = [*tensors_in(args), *tensors_in(kwargs)]
        if tensors and not facts.lifts and not any(map(self.is_our_fake, tensors)):
            return func(*args, **kwargs)
        if func.namespace == "c10d":
            return self._collective(func, tuple(args), kwargs)
        if func.namespace in ("_c10d_functional", "_dtensor"):
            with self:  # the kernel for real tensors, so that the c10d ops in it come here
                return func.redispatch(_KEYS_OF_REAL, *args, **kwargs)
        if not tensors and self.has_real_integers and not _makes_floats(kwargs):
            return func(*args, **kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            return self.value(tensors[0]).item()
        return self._simulate(func, facts, tensors, types, args, kwargs)

    def value(self, tensor: Tensor) -> Tensor:
        """A real tensor with the values of a simulated one. Raises: CannotSimulate."""
        if not self.is_our_fake(tensor):
            return tensor
        with torch._C._DisableTorchDispatch():
            found = self.known.of(tensor)
        if found is None:
            raise self._refuse()
        return found

    # ------------------------------------------------------------------ ops
    def _simulate(
        self,
        func: OpOverload,
        facts: OpFacts,
        tensors: list[Tensor],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        if facts.sets_storage and isinstance(data := args[1], torch.UntypedStorage):
            return self._set(func, types, args, kwargs, data)
        written = list(facts.written_tensors(args, kwargs))
        if not all(map(self.is_our_fake, written)):
            raise self._refuse()  # it would have data that is not true any more
        values = self._values(tensors)
        if facts.depends_on_values(args):
            if values is not None:
                return self._compute_whole(func, args, kwargs, values)
            if facts.indexes and _is_sync_batch_norm():
                # No rank is empty: each has a batch like this one's.
                return torch.empty_like(tensors[0])
            raise self._refuse()
        if facts.is_direct and kwargs.get("device") is None and self._are_on_cpu(tensors):
            with in_kernel_invocation_manager(self):
                out = self._wrapped(func(*args, **kwargs))
            if facts.sums_in_output:
                _keep_summands(out, tensors)
        else:
            out = super().dispatch(func, types, args, kwargs)
        if facts.lifts:
            return self._lifted(out, tensors[0])
        if values is not None and not _is_large(out):
            self._compute(func, facts, args, kwargs, values, out)
        else:
            self.known.forget(written)
        return out

    def _are_on_cpu(self, tensors: list[Tensor]) -> bool:
        return bool(tensors) and all(self.is_our_fake(t) and t.fake_device == _CPU for t in tensors)

    def _wrapped(self, out: object) -> object:
        """What a meta kernel returned, as tensors of this mode."""
        if isinstance(out, Tensor):
            return out if isinstance(out, FakeTensor) else FakeTensor(self, out, _CPU)
        if isinstance(out, (tuple, list)):
            return type(out)(map(self._wrapped, out))
        return out

    # ------------------------------------------------------------------ values
    def _values(self, tensors: list[Tensor]) -> dict[int, Tensor] | None:
        """The values of all of the tensors, None if those of one are unknown."""
        found: dict[int, Tensor] = {}
        for tensor in tensors:
            value = self.known.of(tensor) if self.is_our_fake(tensor) else tensor
            if value is None:
                return None
            found[id(tensor)] = value
        return found

    def _compute(
        self,
        func: OpOverload,
        facts: OpFacts,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        values: dict[int, Tensor],
        out: object,
    ) -> None:
        """Do with the values what was done with the tensors that stand for them."""
        made = list(tensors_in(out))
        if facts.is_random_float and made[0].is_floating_point() and made[0].numel() > 1:
            return
        computed = func(*_put(args, values), **_put(kwargs, values))
        for simulated, value in zip(made, tensors_in(computed), strict=False):
            if self.known.of(simulated) is None:
                self.known.remember(simulated, value)

    def _compute_whole(
        self,
        func: OpOverload,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        values: dict[int, Tensor],
    ) -> object:
        """An op whose output's shape depends on values, all of which are known."""
        computed = func(*_put(args, values), **_put(kwargs, values))
        return pytree.tree_map_only(Tensor, self._simulated, computed)

    def _simulated(self, value: Tensor) -> Tensor:
        simulated = self.fake_tensor_converter.from_real_tensor(self, value)
        self.known.remember(simulated, value)
        return simulated

    def _lifted(self, out: object, data: Tensor) -> object:
        """torch.tensor(...): its data is in the program."""
        if isinstance(out, FakeTensor):
            out.constant = None  # ours are known by storage, and are not invalidated by size
            if not self.is_our_fake(data):
                self.known.remember(out, data.detach().clone())
        return out

    def _set(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        data: torch.UntypedStorage,
    ) -> object:
        """Give a tensor a storage that has data: unpickled, or of torch's object collectives."""
        if data.device.type != "cpu":
            return self._dispatch_impl(func, types, args, kwargs)
        num_bytes = data.nbytes()
        simulated = torch.UntypedStorage(num_bytes, device="meta")  # type: ignore[no-untyped-call]
        # Not by way of the cache of ops, which would keep the storage alive.
        out = self._dispatch_impl(func, types, (args[0], simulated, *args[2:]), kwargs)
        if num_bytes <= MAX_NUM_INTEGERS:
            self.known.pair(simulated, data)
        return out

    # ------------------------------------------------------------------ collectives
    def _collective(
        self, func: OpOverload, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        op = _COLLECTIVES.get(func._schema.name.partition("::")[2])
        if op is not None and not _is_own_broadcast(op, args):
            self.known.forget(output_tensors(op, args))
        with in_kernel_invocation_manager(self):
            return func(*args, **kwargs)


def _is_own_broadcast(op: Op, args: tuple[object, ...]) -> bool:
    group = args[op.group]
    assert isinstance(group, torch.ScriptObject), "the schema says so"
    return op.public == "broadcast" and args[2] == ProcessGroup.unbox(group).rank()


def _keep_summands(out: object, tensors: list[Tensor]) -> None:
    if isinstance(out, Tensor) and out.dim() == 0:
        shape = torch.broadcast_shapes(tensors[0].shape, tensors[1].shape)  # type: ignore[no-untyped-call]
        out.untyped_storage().resize_(shape.numel() * out.element_size())


def _put(given: Given, values: dict[int, Tensor]) -> Given:
    put: Given = pytree.tree_map_only(Tensor, lambda t: values[id(t)], given)
    return put


def _makes_floats(kwargs: Mapping[str, object]) -> bool:
    dtype = kwargs.get("dtype")
    return not isinstance(dtype, torch.dtype) or dtype.is_floating_point or dtype.is_complex


def _is_large(out: object) -> bool:
    return any(t.numel() > MAX_NUM_INTEGERS for t in tensors_in(out))


def _is_sync_batch_norm() -> bool:
    """Whether SyncBatchNorm's own code asks, which drops the statistics of empty ranks."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _SYNC_BATCH_NORM.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code is _SYNC_BATCH_NORM
