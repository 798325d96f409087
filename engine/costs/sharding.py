"""How torch cuts parameters into shards, and what the cuts pad.

May import engine.costs.arguments. Counts are elements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

from engine.costs.arguments import require_at_least

ALIGNMENT_BYTES = 16
MIB = 1024 * 1024


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def flat_offsets(
    numels: Sequence[int], *, use_orig_params: bool = False, element_bytes: int = 4
) -> tuple[int, ...]:
    """Where each parameter begins in FSDP1's flat parameter, in elements.

    With use_orig_params every one begins at a multiple of 16 bytes.
    Raises: ValueError when element_bytes is below 1 or a size is negative.
    Source: torch/distributed/fsdp/_flat_param.py, _init_flat_param_and_metadata.
    """
    require_at_least("element_bytes", element_bytes, 1)
    aligned = max(1, ALIGNMENT_BYTES // element_bytes) if use_orig_params else 1
    offsets, end = [], 0
    for numel in numels:
        require_at_least("numels", numel, 0)
        start = _ceil_div(end, aligned) * aligned
        offsets.append(start)
        end = start + numel
    return tuple(offsets)


def flat_numel(
    numels: Sequence[int], *, num_ranks: int, use_orig_params: bool = False, element_bytes: int = 4
) -> int:
    """Elements of FSDP1's flat parameter, padded so that every rank's shard has the same size.

    Raises: ValueError when num_ranks or element_bytes is below 1, or a size is negative.
    Source: torch/distributed/fsdp/_flat_param.py, _get_shard; `flat_offsets`.
    """
    require_at_least("num_ranks", num_ranks, 1)
    offsets = flat_offsets(numels, use_orig_params=use_orig_params, element_bytes=element_bytes)
    total = offsets[-1] + numels[-1] if numels else 0
    return _ceil_div(total, num_ranks) * num_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShard:
    """One rank's part of a parameter that is cut along its first dimension."""

    numel: int
    """Elements that are really this rank's."""
    padded_numel: int
    """Elements that the rank holds and sends: as many as the first rank's part."""


def row_shard(shape: Sequence[int], *, num_ranks: int, rank: int = 0) -> RowShard:
    """One rank's part of a parameter under FSDP2: ceil(rows / N) rows, fewer or none at the end.

    Raises: ValueError when shape has no dimension or a negative one, num_ranks is below 1 or rank
    is not among them.
    Source: torch/distributed/fsdp/_fully_shard/_fsdp_param.py, _init_sharded_param; torch.chunk.
    """
    require_at_least("num_ranks", num_ranks, 1)
    require_at_least("shape", len(shape), 1)
    require_at_least("shape", min(shape), 0)
    require_at_least("rank", rank, 0)
    if rank >= num_ranks:
        raise ValueError(f"rank must be below num_ranks ({num_ranks}), not {rank}")
    rows, row_numel = shape[0], prod(shape[1:])
    most = _ceil_div(rows, num_ranks)
    mine = min(most, max(0, rows - most * rank))
    return RowShard(numel=mine * row_numel, padded_numel=most * row_numel)


def whole_tensor_partition(numels: Sequence[int], *, num_ranks: int) -> tuple[tuple[int, ...], ...]:
    """Indices of the parameters that each rank updates under ZeroRedundancyOptimizer.

    Largest first, each to the rank that has least so far; tensors are never cut.
    Raises: ValueError when num_ranks is below 1.
    Source: torch/distributed/optim/zero_redundancy_optimizer.py, _partition_parameters.
    """
    require_at_least("num_ranks", num_ranks, 1)
    sizes = [0] * num_ranks
    parts: list[list[int]] = [[] for _ in range(num_ranks)]
    for index in sorted(range(len(numels)), key=lambda i: numels[i], reverse=True):
        rank = sizes.index(min(sizes))
        parts[rank].append(index)
        sizes[rank] += numels[index]
    return tuple(tuple(part) for part in parts)


def buckets(
    numels: Sequence[int], *, element_bytes: int = 4, bucket_cap_bytes: int | None = None
) -> tuple[int, ...]:
    """Elements of DDP's buckets, first filled first: gradients arrive last parameter first.

    A bucket is full once it reaches its cap: 1 MiB for the first and 25 MiB for the others, or
    bucket_cap_bytes for all.
    Raises: ValueError when element_bytes or bucket_cap_bytes is below 1.
    Source: torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size;
    torch/nn/parallel/distributed.py, _ddp_init_helper.
    """
    require_at_least("element_bytes", element_bytes, 1)
    if bucket_cap_bytes is not None:
        require_at_least("bucket_cap_bytes", bucket_cap_bytes, 1)
    caps = (bucket_cap_bytes or (MIB if n == 0 else 25 * MIB) for n in count())
    cap, filled, done = next(caps), 0, []
    for numel in reversed(numels):
        filled += numel
        if filled * element_bytes >= cap:
            done.append(filled)
            cap, filled = next(caps), 0
    return (*done, filled) if filled else tuple(done)
