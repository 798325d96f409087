"""SyncBatchNorm's kernels for tensors without data: shapes and dtypes of `engine.torch_cpu`'s.

May import torch and engine.torch_cpu. Shape legend: N samples, C channels, * further dimensions.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.torch_cpu.kernels import statistics_dtype


def register_batch_norm() -> torch.library.Library:
    """Register the kernels at the Meta key; they live as long as what is returned."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    kernels: tuple[tuple[str, Callable[..., object]], ...] = (
        ("batch_norm_stats", _two_per_channel),
        ("batch_norm_gather_stats_with_counts", _two_per_channel),
        ("batch_norm_elemt", _like_input),
        ("batch_norm_backward_reduce", _backward_reduce),
        ("batch_norm_backward_elemt", _like_second),
    )
    for name, kernel in kernels:
        library.impl(name, kernel, "Meta")  # type: ignore[no-untyped-call]
    return library


def _two_per_channel(x: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    """Mean [C] and invstd [C] of x [N, C, *]."""
    dtype = statistics_dtype(x.dtype)
    return x.new_empty(x.size(1), dtype=dtype), x.new_empty(x.size(1), dtype=dtype)


def _like_input(x: Tensor, *_: object) -> Tensor:
    return torch.empty_like(x)


def _like_second(grad_out: Tensor, x: Tensor, *_: object) -> Tensor:
    return torch.empty_like(x)


def _backward_reduce(
    grad_out: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Sums [C] of dy and dy * (x - mean), gradients of weight and bias [C]; None if not asked."""
    dtype = mean.dtype if weight is None else weight.dtype
    sums = [torch.empty_like(mean) if input_g else None for _ in range(2)]
    gradients = [torch.empty_like(mean, dtype=dtype) if g else None for g in (weight_g, bias_g)]
    return sums[0], sums[1], gradients[0], gradients[1]
