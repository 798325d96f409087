"""Numbers that tell whether ranks hold the same values. May import torch."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

_WEIGHTS = 97
"""Tensors are weighted by their place, so that two that change places change the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The weighted sum of all values, and the sum of their squares."""

    total: float = 0.0
    square: float = 0.0
    numel: int = 0


def is_plain(x: object) -> bool:
    """Whether x is a dense tensor with data of its own: no DTensor, nothing meta or batched."""
    return (
        isinstance(x, Tensor)
        and type(x) in (Tensor, torch.nn.Parameter)
        and x.layout is torch.strided
        and not x.is_meta
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def digest(tensors: Iterable[Tensor]) -> Digest:
    """The digest of plain tensors, in their order."""
    totals, squares, numel = [], [], 0
    for place, tensor in enumerate(tensors):
        if tensor.numel() == 0 or tensor.untyped_storage().nbytes() == 0:
            continue  # FSDP frees the memory of what it has resharded
        values = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        if values.dtype is not torch.float64:
            values = values.float()
        weight = 1 + (place % _WEIGHTS) / _WEIGHTS
        totals.append(weight * values.sum(dtype=torch.float64))
        squares.append(torch.linalg.vector_norm(values, dtype=torch.float64).square())
        numel += tensor.numel()
    if not totals:
        return Digest()
    return Digest(
        total=torch.stack(totals).sum().item(),
        square=torch.stack(squares).sum().item(),
        numel=numel,
    )
