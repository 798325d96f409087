"""Reports what each batch-norm layer computes in training: local, synchronised and running.

May import engine.events and torch. Shape legend: N samples, C channels, * further dimensions.
"""

import time
from collections.abc import Callable, Iterator
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._python_dispatch import _disable_current_modes

from engine.events import Scope, StatisticName
from engine.reports import Report, StatisticReport
from engine.tracers.position import Position

NUM_CHANNELS_SHOWN = 64
HALF_DTYPES = (torch.float16, torch.bfloat16)


class StatisticTracer:
    """Statistics of the batch-norm layers of one rank."""

    def __init__(self, report: Callable[[Report], None], position: Position) -> None:
        self._report = report
        self._position = position
        self._synced: tuple[Tensor, Tensor] | None = None
        """Mean [C] and variance [C] that the layer now in its forward normalises with."""

    def gathered(self, mean: Tensor, invstd: Tensor, eps: float) -> None:
        """Take the synchronised statistics [C] of the SyncBatchNorm layer that is running."""
        with _disable_current_modes():
            self._synced = (mean, (invstd.double().pow(-2) - eps).clamp(min=0))

    def after_forward(self, module: nn.Module, args: tuple[object, ...], output: object) -> None:
        """Report the statistics of one forward of a batch-norm layer; ignores other modules."""
        if not isinstance(module, _BatchNorm):
            return
        synced, self._synced = self._synced, None
        x = args[0] if args else None
        if not module.training or not _readable(x):
            return
        # The learner's own modes (a FLOP counter, say) must not see what is computed here.
        with torch.no_grad(), _disable_current_modes(), torch._C.DisableTorchFunction():
            self._report_all(module, x, synced)

    def _report_all(
        self, module: _BatchNorm, x: Tensor, synced: tuple[Tensor, Tensor] | None
    ) -> None:
        name, phase = self._position.name(module), self._position.phase()
        line = self._position.line()
        for statistic, scope, values in _statistics(module, x, synced):
            self._report(
                StatisticReport(
                    at_ns=time.monotonic_ns(),
                    module=name,
                    name=statistic,
                    scope=scope,
                    values=tuple(values[:NUM_CHANNELS_SHOWN].tolist()),
                    phase=phase,
                    line=line,
                )
            )


def _statistics(
    module: _BatchNorm, x: Tensor, synced: tuple[Tensor, Tensor] | None
) -> Iterator[tuple[StatisticName, Scope, Tensor]]:
    mean, var = local_statistics(x)
    yield "mean", "local", mean
    yield "var", "local", var
    yield "count", "local", torch.tensor([x.numel() // max(x.size(1), 1)])
    if synced is not None and isinstance(module, nn.SyncBatchNorm):
        yield "mean", "global", synced[0]
        yield "var", "global", synced[1]
    if _readable(module.running_mean):
        yield "running_mean", "local", module.running_mean
    if _readable(module.running_var):
        yield "running_var", "local", module.running_var


def _readable(x: object) -> TypeGuard[Tensor]:
    """Whether x is a plain tensor with data: no subclass (DTensor, a proxy), no batched one."""
    return (
        type(x) is Tensor
        and not x.is_meta
        and x.dim() > 0
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def local_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [C] and biased variance [C] of x [N, C, *], from centred moments; zeros if empty."""
    x = x.float() if x.dtype in HALF_DTYPES else x
    if x.numel() == 0:
        return x.new_zeros(x.size(1)), x.new_zeros(x.size(1))
    dims = [dim for dim in range(x.dim()) if dim != 1]
    var, mean = torch.var_mean(x, dims, correction=0)
    return mean, var
