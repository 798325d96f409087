"""Exported values as torch's own, in the process that runs a check. May import torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.grading.frames import ExportedShard, ExportedTensor, NotExportable, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What one rank held of a DTensor."""

    local: torch.Tensor
    shape: tuple[int, ...]
    """Of the whole."""
    mesh_shape: tuple[int, ...]
    placements: tuple[str, ...]
    """As torch writes them: `Shard(dim=0)`, `Replicate()`."""


def to_torch(value: Value) -> object:
    """The value with torch tensors in it; what could not be exported stays a NotExportable."""
    match value:
        case ExportedTensor():
            return tensor_of(value)
        case ExportedShard():
            return Shard(
                local=tensor_of(value.local),
                shape=value.shape,
                mesh_shape=value.mesh_shape,
                placements=value.placements,
            )
        case None | bool() | int() | float() | str() | NotExportable():
            return value
        case Mapping():
            return {key: to_torch(item) for key, item in value.items()}
        case tuple():
            return tuple(to_torch(item) for item in value)
        case Sequence():
            return [to_torch(item) for item in value]


def tensor_of(exported: ExportedTensor) -> torch.Tensor:
    """The tensor, with memory of its own."""
    dtype = getattr(torch, exported.dtype)
    assert isinstance(dtype, torch.dtype), "the decoder lets known dtypes through only"
    if not exported.data:
        return torch.empty(exported.shape, dtype=dtype)
    return torch.frombuffer(bytearray(exported.data), dtype=dtype).reshape(exported.shape)


def whole(parts: Sequence[object]) -> torch.Tensor | None:
    """One tensor from what the ranks hold of it; None where that does not fit together.

    Understands tensors that are alike on all ranks, and DTensors on a mesh of one dimension.
    """
    if parts and all(isinstance(part, torch.Tensor) for part in parts):
        first = parts[0]
        assert isinstance(first, torch.Tensor)
        alike = all(isinstance(p, torch.Tensor) and _are_equal(first, p) for p in parts)
        return first if alike else None
    shards = [part for part in parts if isinstance(part, Shard)]
    if not shards or len(shards) != len(parts):
        return None
    layouts = {(shard.shape, shard.mesh_shape, shard.placements) for shard in shards}
    if len(layouts) != 1 or shards[0].mesh_shape != (len(parts),):
        return None
    return _joined(shards)


def _joined(shards: Sequence[Shard]) -> torch.Tensor | None:
    (placement,) = shards[0].placements if len(shards[0].placements) == 1 else ("",)
    locals_ = [shard.local for shard in shards]
    if placement == "Replicate()":
        return locals_[0] if all(_are_equal(locals_[0], other) for other in locals_) else None
    for dim in range(len(shards[0].shape)):
        if placement == f"Shard(dim={dim})":
            return _concatenated(locals_, dim, shards[0].shape)
    return None


def _concatenated(
    parts: Sequence[torch.Tensor], dim: int, shape: tuple[int, ...]
) -> torch.Tensor | None:
    if len({part.dtype for part in parts}) != 1 or any(p.dim() != len(shape) for p in parts):
        return None
    for part in parts:
        sizes = tuple(part.shape)
        if (*sizes[:dim], *sizes[dim + 1 :]) != (*shape[:dim], *shape[dim + 1 :]):
            return None
    joined = torch.cat(list(parts), dim)
    return joined if tuple(joined.shape) == shape else None


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)
