"""Tensors without data for a whole program: torch's FakeTensorMode, and what a learner adds to it.

May import torch, engine.tracers.c10d and engine.simulate. Every tensor of the program has shape,
strides, dtype and device "cpu", and a storage of its nominal size that no memory stands behind.
Ops run their meta kernels. On top of that: values that depend on nothing simulated are known,
collectives reach the tracers, and reading anything else is refused.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, MappingProxyType

import torch
from torch import Tensor
from torch._C._distributed_c10d import ProcessGroup
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    in_kernel_invocation_manager,
)
from torch.nn.modules._functions import SyncBatchNorm
from torch.utils import _pytree as pytree

from engine.simulate.known import MAX_NUM_INTEGERS, KnownValues, has_meaning
from engine.tracers.c10d import C10D_OPS, Op, output_tensors

_aten = torch.ops.aten
_PLAIN = (Tensor, torch.nn.Parameter, FakeTensor)
_OP_OF_NAME = {op.name: op for op in C10D_OPS}
_KEYS_OF_REAL = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_VALUE_TAGS = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
_NOTHING: Mapping[str, object] = MappingProxyType({})
_SYNC_BATCH_NORM = SyncBatchNorm.forward.__code__


class SimulationMode(FakeTensorMode):
    """The mode under which a simulated rank runs its program."""

    def __init__(self, refuse: Callable[[], RuntimeError]) -> None:
        super().__init__(allow_non_fake_inputs=True)  # type: ignore[no-untyped-call]
        self.known = KnownValues()
        self.has_real_integers = False
        """Set while torch's own C++ code makes integers that it reads itself."""
        self._refuse = refuse
        self._written: dict[OpOverload, tuple[int, ...]] = {}

    def dispatch(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = _NOTHING,
    ) -> object:
        """Run one op on simulated tensors; real ones among themselves stay real."""
        if any(t not in _PLAIN for t in types):
            return super().dispatch(func, types, args, kwargs)
        tensors = list(_tensors(args, kwargs))
        if tensors and func not in _LIFTS and not any(map(self.is_our_fake, tensors)):
            return func(*args, **kwargs)
        if func.namespace == "c10d":
            return self._collective(func, tuple(args), kwargs)
        if func.namespace in ("_c10d_functional", "_dtensor"):
            with self:  # the kernel for real tensors, so that the c10d ops in it come here
                return func.redispatch(_KEYS_OF_REAL, *args, **kwargs)
        if not tensors and self.has_real_integers and not _makes_floats(kwargs):
            return func(*args, **kwargs)
        if func is _aten._local_scalar_dense.default:
            return self._read(tensors[0])
        return self._simulate(func, types, args, kwargs, tensors)

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
    def _read(self, tensor: Tensor) -> object:
        return self.value(tensor).item()

    def _simulate(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        tensors: list[Tensor],
    ) -> object:
        values = self._values(tensors)
        if _depends_on_values(func, args):
            if values is not None:
                return self._compute_whole(func, args, kwargs, values)
            if func is _aten.index.Tensor and _is_sync_batch_norm():
                # No rank is empty: each has a batch like this one's.
                return torch.empty_like(tensors[0])
            raise self._refuse()
        out = super().dispatch(func, types, args, kwargs)
        if func in _LIFTS:
            return self._lifted(out, tensors[0])
        if values is not None and not _is_large(out):
            self._compute(func, args, kwargs, values, out)
        else:
            self.known.forget(self._written_by(func, args, kwargs))
        return out

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
        args: Sequence[object],
        kwargs: Mapping[str, object],
        values: dict[int, Tensor],
        out: object,
    ) -> None:
        """Do with the values what was done with the tensors that stand for them."""
        computed = func(*_put(args, values), **_put(kwargs, values))
        for simulated, value in zip(_tensors(out), _tensors(computed), strict=False):
            if self.known.of(simulated) is None and (values or has_meaning(func, value)):
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

    def _written_by(
        self, func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Iterator[Tensor]:
        if not isinstance(func, OpOverload):
            return
        if "batch_norm" in func._schema.name:  # running statistics, which the schema does not say
            yield from _tensors(*args)
        if not func._schema.is_mutable:
            return
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[index] if index < len(args) else kwargs.get(argument.name)
                yield from _tensors(given)

    # ------------------------------------------------------------------ collectives
    def _collective(
        self, func: OpOverload, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        op = _OP_OF_NAME.get(func._schema.name.partition("::")[2])
        if op is not None and not _is_own_broadcast(op, args):
            self.known.forget(output_tensors(op, args))
        with in_kernel_invocation_manager(self):
            return func(*args, **kwargs)


_LIFTS = (_aten.lift_fresh.default, _aten.lift.default, _aten.lift_fresh_copy.default)


def _tensors(*given: object) -> Iterator[Tensor]:
    for item in given:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from _tensors(*item)
        elif isinstance(item, dict):
            yield from _tensors(*item.values())


def _put(given: object, values: dict[int, Tensor]):  # type: ignore[no-untyped-def]
    return pytree.tree_map_only(Tensor, lambda t: values[id(t)], given)


def _makes_floats(kwargs: Mapping[str, object]) -> bool:
    dtype = kwargs.get("dtype")
    return not isinstance(dtype, torch.dtype) or dtype.is_floating_point or dtype.is_complex


def _is_large(out: object) -> bool:
    return any(t.numel() > MAX_NUM_INTEGERS for t in _tensors(out))


def _depends_on_values(func: OpOverload, args: Sequence[object]) -> bool:
    """Whether the output of the op, or its shape, is not decided by the shapes of its inputs."""
    if func is _aten.index.Tensor:
        return any(t.dtype in (torch.bool, torch.uint8) for t in _tensors(args[1]))
    return not _VALUE_TAGS.isdisjoint(func.tags)


def _is_own_broadcast(op: Op, args: tuple[object, ...]) -> bool:
    group = args[op.group]
    assert isinstance(group, torch.ScriptObject)
    return op.public == "broadcast" and args[2] == ProcessGroup.unbox(group).rank()


def _is_sync_batch_norm() -> bool:
    """Whether SyncBatchNorm's own code asks, which drops the statistics of empty ranks."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _SYNC_BATCH_NORM.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code is _SYNC_BATCH_NORM
