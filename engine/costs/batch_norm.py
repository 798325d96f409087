"""What synchronised batch norm sends, per layer of C channels, and what it would not have to.

May import engine.costs.{arguments,flows}.
"""

from engine.costs.arguments import require_at_least
from engine.costs.flows import Flow


def sync_batch_norm(
    *,
    num_channels: int,
    num_ranks: int,
    input_needs_gradient: bool = True,
    element_bytes: int = 4,
) -> tuple[Flow, ...]:
    """One training step of one nn.SyncBatchNorm layer.

    Forward: an all_gather to which every rank gives 2C + 1 values (mean, invstd, count), so that
    it ends with N (2C + 1). Backward: an all_reduce of 2C values, if the input needs a gradient.
    Raises: ValueError when num_channels, num_ranks or element_bytes is below 1.
    Source: torch/nn/modules/_functions.py, SyncBatchNorm.
    """
    require_at_least("num_channels", num_channels, 1)
    require_at_least("num_ranks", num_ranks, 1)
    require_at_least("element_bytes", element_bytes, 1)
    forward = Flow(
        op="all_gather",
        phase="forward",
        num_elements=num_ranks * (2 * num_channels + 1),
        group_size=num_ranks,
        element_bytes=element_bytes,
    )
    backward = Flow(
        op="all_reduce",
        phase="backward",
        num_elements=2 * num_channels,
        group_size=num_ranks,
        element_bytes=element_bytes,
    )
    return (forward, backward) if input_needs_gradient else (forward,)


def ddp_buffers(*, num_channels: int, num_ranks: int) -> tuple[Flow, ...]:
    """What DDP broadcasts of one batch-norm layer's buffers before each forward: 2C + 1 values.

    running_mean and running_var are float32, num_batches_tracked is one int64. With
    nn.SyncBatchNorm all ranks have the same already.
    Raises: ValueError when num_channels or num_ranks is below 1.
    Source: torch/nn/parallel/distributed.py, _sync_buffers.
    """
    require_at_least("num_channels", num_channels, 1)
    require_at_least("num_ranks", num_ranks, 1)
    running = Flow(
        op="broadcast",
        phase="forward",
        num_elements=2 * num_channels,
        group_size=num_ranks,
    )
    tracked = Flow(
        op="broadcast", phase="forward", num_elements=1, group_size=num_ranks, element_bytes=8
    )
    return running, tracked
