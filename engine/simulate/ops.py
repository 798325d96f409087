"""What a simulation must know of an op besides its arguments, found once for each.

May import torch. Ops are never freed, so what was found is kept by identity: hashing an op is a
call of a Python function.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_impls import (
    dispatch_to_op_implementations_dict,
    op_implementations_checks,
    op_implementations_dict,
)

_aten = torch.ops.aten
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_VALUE_TAGS = frozenset((torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output))
_LIFTS = (_aten.lift_fresh.default, _aten.lift.default, _aten.lift_fresh_copy.default)
_SETS_STORAGE = (_aten.set_.source_Storage, _aten.set_.source_Storage_storage_offset)
_SUMS_IN_OUTPUT = (
    _aten.mse_loss.default,
    _aten.smooth_l1_loss.default,
    _aten.soft_margin_loss.default,
    _aten.binary_cross_entropy.default,
)
_PLAIN_WITHOUT_SYMBOLS = (
    _aten.view.default,
    _aten._unsafe_view.default,
    _aten.slice.Tensor,
    _aten.select.int,
    _aten.copy_.default,
    _aten.zeros_like.default,
    _aten.empty_like.default,
    _aten.new_zeros.default,
    _aten.new_empty.default,
)
"""FakeTensorMode has code of its own for these, which matters for symbolic shapes and devices."""
_FLOATS_WITHOUT_MEANING = (
    _aten.empty.memory_format,
    _aten.empty_strided.default,
    _aten.rand.default,
    _aten.rand.generator,
    _aten.randn.default,
    _aten.randn.generator,
    _aten.normal.float_float,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpFacts:
    """One op."""

    is_direct: bool
    """torch's own meta kernel says all of it, the size of its storages included.

    FakeTensorMode would run a decomposition, or make the output anew from a cache; that costs more
    and says less.
    """
    needs_values: bool
    """Its output, or the shape of it, is not decided by the shapes of its inputs."""
    indexes: bool
    """It needs values if an index is a mask."""
    lifts: bool
    """It makes a tensor of data in the program: torch.tensor(...)."""
    sets_storage: bool
    sums_in_output: bool
    """Its CPU kernel leaves the sum in the storage of what it summed up."""
    is_random_float: bool
    """Floats that it makes have no meaning: weights and inputs start so, and knowing the values of
    small ones would make small models real by accident."""
    written: tuple[tuple[int, str], ...]
    """Position and name of the arguments that it writes."""
    writes_unsaid: bool
    """It writes arguments of which its schema does not say so: running statistics."""

    def written_tensors(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Iterator[Tensor]:
        """The tensors that a call writes."""
        if self.writes_unsaid:
            yield from tensors_in(args)
        for index, name in self.written:
            yield from tensors_in(args[index] if index < len(args) else kwargs.get(name))

    def depends_on_values(self, args: Sequence[object]) -> bool:
        """Whether this call cannot be simulated without the values of its tensors."""
        if self.indexes:
            return any(t.dtype in (torch.bool, torch.uint8) for t in tensors_in(args[1]))
        return self.needs_values


class Ops:
    """The facts of all ops that were called."""

    def __init__(self) -> None:
        self._facts: dict[int, OpFacts] = {}

    def facts(self, func: OpOverload) -> OpFacts:
        """What is to be known of func."""
        found = self._facts.get(id(func))
        if found is None:
            found = self._facts[id(func)] = _facts_of(func)
        return found


def _facts_of(func: OpOverload) -> OpFacts:
    return OpFacts(
        is_direct=_is_direct(func),
        needs_values=not _VALUE_TAGS.isdisjoint(func.tags),
        indexes=func is _aten.index.Tensor,
        lifts=func in _LIFTS,
        sets_storage=func in _SETS_STORAGE,
        sums_in_output=func in _SUMS_IN_OUTPUT,
        is_random_float=func in _FLOATS_WITHOUT_MEANING,
        written=tuple(
            (index, argument.name)
            for index, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
        writes_unsaid="batch_norm" in func._schema.name,
    )


def _is_direct(func: OpOverload) -> bool:
    name = func.name()  # type: ignore[no-untyped-call]
    if func in _PLAIN_WITHOUT_SYMBOLS:
        return True
    return (
        func.namespace == "aten"
        and torch.Tag.inplace_view not in func.tags
        and not func.has_kernel_for_dispatch_key(_COMPOSITE)
        and torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "Meta")
        and func not in op_implementations_dict
        and not any(
            applies(func)
            for applies, special in op_implementations_checks
            if special is not dispatch_to_op_implementations_dict
        )
    )


def tensors_in(given: object) -> Iterator[Tensor]:
    """All tensors in lists, tuples and dicts of arguments."""
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for item in given:
            yield from tensors_in(item)
    elif isinstance(given, dict):
        for item in given.values():
            yield from tensors_in(item)
