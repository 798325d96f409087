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
from torch._subclasses.fake_impls import (
    dispatch_to_op_implementations_dict,
    op_implementations_checks,
    op_implementations_dict,
)
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
_CPU = torch.device("cpu")
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_NOTHING: Mapping[str, object] = MappingProxyType({})
_SYNC_BATCH_NORM = SyncBatchNorm.forward.__code__


class SimulationMode(FakeTensorMode):
    """The mode under which a simulated rank runs its program."""

    stands_for_memory = True
    """Tells the memory tracer that the storages of this mode's tensors are what a rank holds."""

    def __init__(self, refuse: Callable[[], RuntimeError]) -> None:
        super().__init__(allow_non_fake_inputs=True)  # type: ignore[no-untyped-call]
        self.known = KnownValues()
        self.has_real_integers = False
        """Set while torch's own C++ code makes integers that it reads itself."""
        self._refuse = refuse
        self._direct: dict[int, bool] = {}

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

    def __deepcopy__(self, memo: object) -> "SimulationMode":
        return self  # every tensor refers to it, and is copied with all that it refers to

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
        if func in _SETS_STORAGE and isinstance(data := args[1], torch.UntypedStorage):
            return self._set(func, types, args, kwargs, data)
        if any(not self.is_our_fake(t) for t in self._written_by(func, args, kwargs)):
            raise self._refuse()  # it would have data that is not true any more
        values = self._values(tensors)
        if _depends_on_values(func, args):
            if values is not None:
                return self._compute_whole(func, args, kwargs, values)
            if func is _aten.index.Tensor and _is_sync_batch_norm():
                # No rank is empty: each has a batch like this one's.
                return torch.empty_like(tensors[0])
            raise self._refuse()
        if self._is_direct(func) and kwargs.get("device") is None and self._are_ours(tensors):
            with in_kernel_invocation_manager(self):
                out = self._wrapped(func(*args, **kwargs))
            if func in _SUMMED_IN_OUTPUT:
                _keep_summands(out, tensors)
        else:
            out = super().dispatch(func, types, args, kwargs)
        if func in _LIFTS:
            return self._lifted(out, tensors[0])
        if values is not None and not _is_large(out):
            self._compute(func, args, kwargs, values, out)
        else:
            self.known.forget(self._written_by(func, args, kwargs))
        return out

    def _is_direct(self, func: OpOverload) -> bool:
        """Whether torch's own meta kernel says all of an op, the size of its storages included.

        FakeTensorMode would run a decomposition, or make the output anew from a cache; some
        kernels leave a scalar in the storage of what they summed up, and only theirs tell.
        """
        found = self._direct.get(id(func))  # ops are never freed
        if found is None:
            found = self._direct[id(func)] = (
                func.namespace == "aten"
                and torch.Tag.inplace_view not in func.tags
                and not func.has_kernel_for_dispatch_key(_COMPOSITE)
                and torch._C._dispatch_has_computed_kernel_for_dispatch_key(func.name(), "Meta")
                and func not in op_implementations_dict
                and not any(
                    check(func)
                    for check, special in op_implementations_checks
                    if special is not dispatch_to_op_implementations_dict
                )
            )
        return found

    def _are_ours(self, tensors: list[Tensor]) -> bool:
        return bool(tensors) and all(
            self.is_our_fake(t) and t.fake_device == _CPU for t in tensors
        )

    def _wrapped(self, out: object) -> object:
        if isinstance(out, Tensor):
            return out if isinstance(out, FakeTensor) else FakeTensor(self, out, _CPU)
        if isinstance(out, (tuple, list)):
            return type(out)(map(self._wrapped, out))
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
        simulated = torch.UntypedStorage(data.nbytes(), device="meta")
        # Not by way of the cache of ops, which would keep the storage alive.
        out = self._dispatch_impl(func, types, (args[0], simulated, *args[2:]), kwargs)
        if data.nbytes() <= MAX_NUM_INTEGERS:
            self.known.pair(simulated, data)
        return out

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


_SUMMED_IN_OUTPUT = (
    _aten.mse_loss.default,
    _aten.smooth_l1_loss.default,
    _aten.soft_margin_loss.default,
    _aten.binary_cross_entropy.default,
)
_SETS_STORAGE = (_aten.set_.source_Storage, _aten.set_.source_Storage_storage_offset)
_LIFTS = (_aten.lift_fresh.default, _aten.lift.default, _aten.lift_fresh_copy.default)


def _keep_summands(out: object, tensors: list[Tensor]) -> None:
    """Let a loss have the storage of the losses it is the sum of, as the CPU kernels leave it."""
    if isinstance(out, Tensor) and out.dim() == 0:
        num_summands = torch.broadcast_shapes(tensors[0].shape, tensors[1].shape).numel()
        out.untyped_storage().resize_(num_summands * out.element_size())


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
