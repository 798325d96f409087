"""Traffic of one training step in closed form, for Psi parameters and nothing padded.

May import engine.costs.{arguments,flows}. Psi is num_parameters, Psi_root is num_root_parameters.
"""

from dataclasses import replace

from engine.costs.arguments import require_at_least, require_divisor
from engine.costs.flows import Flow


def ddp(*, num_parameters: int, num_ranks: int, element_bytes: int = 4) -> tuple[Flow, ...]:
    """DistributedDataParallel: one all_reduce of all gradients, Psi.

    Raises: ValueError when num_parameters is negative, or num_ranks or element_bytes below 1.
    Source: arXiv 2006.15704, section 3; arXiv 1910.02054, section 7.1.
    """
    _require(num_parameters, num_ranks, element_bytes)
    return (
        Flow(
            op="all_reduce",
            phase="backward",
            num_elements=num_parameters,
            group_size=num_ranks,
            element_bytes=element_bytes,
        ),
    )


def zero1(*, num_parameters: int, num_ranks: int, element_bytes: int = 4) -> tuple[Flow, ...]:
    """DDP with ZeroRedundancyOptimizer: all_reduce Psi, then every rank broadcasts its part, Psi.

    A volume of 3 Psi, not the paper's 2 Psi, for gradients are reduced whole.
    Raises: ValueError when num_parameters is negative, or num_ranks or element_bytes below 1.
    Source: torch/distributed/optim/zero_redundancy_optimizer.py, _sync_params.
    """
    (gradients,) = ddp(
        num_parameters=num_parameters, num_ranks=num_ranks, element_bytes=element_bytes
    )
    return gradients, replace(gradients, op="broadcast", phase="step")


def sharded(
    *,
    num_parameters: int,
    num_ranks: int,
    resharded: bool,
    num_root_parameters: int = 0,
    post_forward_ranks: int | None = None,
    element_bytes: int = 4,
) -> tuple[Flow, ...]:
    """FSDP1 and FSDP2: all_gather Psi in forward, reduce_scatter Psi in backward.

    resharded (FULL_SHARD, reshard_after_forward=True) adds an all_gather of Psi - Psi_root before
    backward, in groups of post_forward_ranks when reshard_after_forward is a number. The root
    unit stays whole after forward; num_root_parameters is 0 if it does not, or owns nothing.
    Raises: ValueError when a count is negative or below 1, num_root_parameters exceeds
    num_parameters, or post_forward_ranks does not divide num_ranks.
    Source: arXiv 2304.11277, section 3.2; arXiv 1910.02054, section 7.2: 2 Psi and 3 Psi.
    """
    _require(num_parameters, num_ranks, element_bytes)
    require_at_least("num_root_parameters", num_root_parameters, 0)
    if num_root_parameters > num_parameters:
        raise ValueError(
            f"num_root_parameters must be at most num_parameters ({num_parameters}), "
            f"not {num_root_parameters}"
        )
    again_ranks = num_ranks if post_forward_ranks is None else post_forward_ranks
    require_divisor("post_forward_ranks", again_ranks, "num_ranks", num_ranks)
    gather = Flow(
        op="all_gather",
        phase="forward",
        num_elements=num_parameters,
        group_size=num_ranks,
        element_bytes=element_bytes,
    )
    again = replace(
        gather,
        phase="backward",
        num_elements=num_parameters - num_root_parameters,
        group_size=again_ranks,
    )
    reduce = replace(gather, op="reduce_scatter", phase="backward")
    return (gather, again, reduce) if resharded else (gather, reduce)


def hybrid(
    *,
    num_parameters: int,
    num_shard_ranks: int,
    num_replicas: int,
    resharded: bool,
    num_root_parameters: int = 0,
    element_bytes: int = 4,
) -> tuple[Flow, ...]:
    """HYBRID_SHARD and HSDP: sharded within a group, then an all_reduce of the shard across groups.

    The all_reduce has Psi / num_shard_ranks elements, rounded up to whole shards.
    Raises: ValueError as `sharded`, and when num_replicas is below 1.
    Source: arXiv 2304.11277, section 3.2.2.
    """
    require_at_least("num_replicas", num_replicas, 1)
    within = sharded(
        num_parameters=num_parameters,
        num_ranks=num_shard_ranks,
        resharded=resharded,
        num_root_parameters=num_root_parameters,
        element_bytes=element_bytes,
    )
    across = Flow(
        op="all_reduce",
        phase="backward",
        num_elements=-(-num_parameters // num_shard_ranks),
        group_size=num_replicas,
        element_bytes=element_bytes,
    )
    return *within, across


def _require(num_parameters: int, num_ranks: int, element_bytes: int) -> None:
    require_at_least("num_parameters", num_parameters, 0)
    require_at_least("num_ranks", num_ranks, 1)
    require_at_least("element_bytes", element_bytes, 1)
