"""The five aten kernels that SyncBatchNorm needs and stock PyTorch has for CUDA only.

May import torch. The autograd function that calls them (torch/nn/modules/_functions.py) is stock.
Statistics are kept in float32 for half inputs, else in the input's dtype, as the CUDA kernels do.
Shape legend: N samples, C channels, * any further dimensions, W ranks with a non-empty input.
Source of the formulas: Ioffe and Szegedy, arXiv 1502.03167, algorithm 1 and section 3; the
combination of variances: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
computing sample variances" (1979), eq. 2.1, for more than two parts.
"""

from collections.abc import Callable

import torch
from torch import Tensor

HALF_DTYPES = (torch.float16, torch.bfloat16)


class Kernels:
    """The registered kernels; on_sync, if set, is called whenever statistics are combined."""

    def __init__(self) -> None:
        self.on_sync: Callable[[], None] | None = None
        # Deregisters its kernels when it is freed, so it lives as long as this object.
        # torch leaves Library untyped.
        self._library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]

    def register(self) -> None:
        """Register the five kernels for the CPU dispatch key."""
        implementations: tuple[tuple[str, Callable[..., object]], ...] = (
            ("batch_norm_stats", stats),
            ("batch_norm_gather_stats_with_counts", self._gather_stats),
            ("batch_norm_elemt", elemt),
            ("batch_norm_backward_reduce", backward_reduce),
            ("batch_norm_backward_elemt", backward_elemt),
        )
        for name, kernel in implementations:
            self._library.impl(name, kernel, "CPU")  # type: ignore[no-untyped-call]

    def _gather_stats(
        self,
        input: Tensor,  # noqa: A002 - aten's name
        mean: Tensor,
        invstd: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        momentum: float,
        eps: float,
        counts: Tensor,
    ) -> tuple[Tensor, Tensor]:
        if self.on_sync is not None:
            self.on_sync()
        return gather_stats(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def register_kernels() -> Kernels:
    """Register the five CPU kernels in this process and return their owner."""
    kernels = Kernels()
    kernels.register()
    return kernels


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the statistics of an input of this dtype."""
    return torch.float32 if dtype in HALF_DTYPES else dtype


_SCALAR_TYPES = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
}


def _check_input(x: Tensor) -> None:
    if x.dtype not in _SCALAR_TYPES:
        name = str(x.dtype).removeprefix("torch.")
        raise NotImplementedError(f"\"batch_norm_stats\" not implemented for '{name}'")


def _check_parameter(name: str, values: Tensor | None, x: Tensor) -> None:
    """A weight or bias [C] has the dtype of x or of its statistics, as for CUDA."""
    if values is None:
        return
    wanted = statistics_dtype(x.dtype)
    if values.dtype not in (x.dtype, wanted):
        raise _wrong_dtype(wanted, values.dtype)
    _check_channels(name, values, x)


def _check_running(name: str, values: Tensor | None, x: Tensor) -> None:
    """A running statistic [C] may be half where those of x are float32, but not mix with float64.

    The CUDA kernel takes the statistics' dtype from it, and then refuses what x has given.
    """
    if values is None:
        return
    wanted, found = statistics_dtype(values.dtype), statistics_dtype(x.dtype)
    if wanted != found:
        raise _wrong_dtype(wanted, found)
    _check_channels(name, values, x)


def _check_channels(name: str, values: Tensor, x: Tensor) -> None:
    """torch.nn.functional.batch_norm refuses so; the CUDA kernels would read past the end."""
    if values.numel() != x.size(1):
        raise RuntimeError(f"{name} should contain {x.size(1)} elements not {values.numel()}")


def _wrong_dtype(wanted: torch.dtype, found: torch.dtype) -> RuntimeError:
    return RuntimeError(
        f"expected scalar type {_SCALAR_TYPES[wanted]} but found "
        f"{_SCALAR_TYPES.get(found, str(found))}"
    )


def _reduced(x: Tensor) -> list[int]:
    return [dim for dim in range(x.dim()) if dim != 1]


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    """View [C] so that it broadcasts over x [N, C, *]."""
    return values.view([1, -1] + [1] * (x.dim() - 2))


def stats(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean [C] and 1 / sqrt(biased variance + eps) [C] of x [N, C, *]; zeros if x is empty.

    Raises: NotImplementedError for an x that is not floating point.
    """
    _check_input(x)
    dtype = statistics_dtype(x.dtype)
    if x.numel() == 0:
        return x.new_zeros(x.size(1), dtype=dtype), x.new_zeros(x.size(1), dtype=dtype)
    var, mean = torch.var_mean(x.to(dtype), _reduced(x), correction=0)
    return mean, (var + eps).rsqrt()


def gather_stats(
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Mean [C] and invstd [C] over all ranks from theirs [W, C], [W, C] and counts [W].

    The running statistics [C] are updated in place, the variance with the global n / (n - 1).
    If every rank is empty they stay as they are, and the answer is that of variance 0.

    Raises: RuntimeError for running statistics of another precision or size.
    """
    _check_running("running_mean", running_mean, x)
    _check_running("running_var", running_var, x)
    dtype = statistics_dtype(x.dtype)
    share = counts.double().view(-1, 1)  # [W, 1]
    n = float(share.sum())
    if n == 0:
        zeros = x.new_zeros(x.size(1), dtype=dtype)
        return zeros, (zeros + eps).rsqrt()
    means, variances = mean.double(), invstd.double().pow(-2) - eps  # [W, C]
    total_mean = (share * means).sum(0) / n
    centred = variances + (means - total_mean).square()
    total_var = ((share * centred).sum(0) / n).clamp_(min=0)
    if running_mean is not None:
        running_mean.copy_(running_mean.double().lerp(total_mean, momentum))
    if running_var is not None:
        unbiased = total_var * (n / max(n - 1, 1))
        running_var.copy_(running_var.double().lerp(unbiased, momentum))
    return total_mean.to(dtype), (total_var + eps).rsqrt().to(dtype)


def elemt(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    eps: float,
) -> Tensor:
    """Normalise x [N, C, *] with mean [C] and invstd [C]; keeps dtype and memory format.

    Raises: RuntimeError for a weight or bias of another precision or size.
    """
    _check_parameter("weight", weight, x)
    _check_parameter("bias", bias, x)
    scale = invstd if weight is None else invstd * weight.to(invstd.dtype)
    out = (x - _per_channel(mean, x)).mul_(_per_channel(scale, x))
    if bias is not None:
        out.add_(_per_channel(bias, x))
    return out.to(x.dtype)


def backward_reduce(
    grad_out: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Local sums [C] of dy and dy * (x - mean), and the gradients of weight and bias [C].

    Like the CUDA kernel it leaves undefined what is not asked for.
    """
    dy = grad_out.to(mean.dtype)
    sum_dy = dy.sum(_reduced(x))
    sum_dy_xmu = (x - _per_channel(mean, x)).mul_(dy).sum(_reduced(x))
    dtype = mean.dtype if weight is None else weight.dtype
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        (sum_dy_xmu * invstd).to(dtype) if weight_g else None,
        sum_dy.to(dtype, copy=True) if bias_g else None,
    )


def backward_elemt(
    grad_out: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """Gradient of the input [N, C, *] from the global sums [C] and every rank's count [W]."""
    n = max(int(count.sum()), 1)
    scale = invstd if weight is None else invstd * weight.to(invstd.dtype)
    slope = invstd.square() * sum_dy_xmu / n
    # Starts from x so that the gradient has its memory format.
    grad = (x - _per_channel(mean, x)).mul_(_per_channel(-slope, x))
    grad.add_(grad_out.to(grad.dtype)).sub_(_per_channel(sum_dy / n, x))
    return grad.mul_(_per_channel(scale, x)).to(x.dtype)
