"""Which part of the parameters the optimizer of one rank works on.

May import engine.costs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.costs.predicted_traffic import unit_numel
from engine.costs.setup import DataParallel, FlatSharding, Setup, Unit
from engine.costs.sharding import flat_offsets, row_shard, whole_tensor_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerShard:
    """Elements and tensors that one rank's optimizer keeps state for."""

    numel: int
    num_tensors: int


def optimizer_shard(setup: Setup, *, rank: int) -> OptimizerShard:
    """What the optimizer of one rank keeps state for.

    Source: `sharding`. With FSDP1's use_orig_params the optimizer sees the parts of parameters
    that lie in its rank's shard, without padding; otherwise the flat shard as a whole.
    """
    numels = [numel for unit in setup.all_units for numel in unit.numels]
    shard_rank = rank % setup.num_shard_ranks
    match setup.strategy:
        case DataParallel(zero_redundancy=True):
            mine = whole_tensor_partition(numels, num_ranks=setup.world_size)[rank]
            return _shard([numels[index] for index in mine])
        case DataParallel():
            return _shard(numels)
        case FlatSharding(sharding_strategy="NO_SHARD", use_orig_params=use_orig_params):
            units = [unit.num_parameters for unit in setup.all_units]
            return _shard(numels if use_orig_params else units)
        case FlatSharding(use_orig_params=True):
            return _shard(
                part for unit in setup.all_units for part in _parts(setup, unit, shard_rank)
            )
        case FlatSharding():
            return _shard(
                unit_numel(setup, unit) // setup.num_shard_ranks for unit in setup.all_units
            )
        case _:
            return _shard(
                row_shard(shape, num_ranks=setup.num_shard_ranks, rank=shard_rank).numel
                for shape in setup.shapes
            )


def _parts(setup: Setup, unit: Unit, shard_rank: int) -> Iterator[int]:
    """Elements of each parameter of a unit that lie in one rank's part of the flat parameter."""
    size = unit_numel(setup, unit) // setup.num_shard_ranks
    start, end = shard_rank * size, (shard_rank + 1) * size
    offsets = flat_offsets(unit.numels, use_orig_params=True, element_bytes=setup.element_bytes)
    for numel, offset in zip(unit.numels, offsets, strict=True):
        part = min(end, offset + numel) - max(start, offset)
        if part > 0:
            yield part


def _shard(numels: Iterable[int]) -> OptimizerShard:
    counted = tuple(numels)
    return OptimizerShard(numel=sum(counted), num_tensors=len(counted))
