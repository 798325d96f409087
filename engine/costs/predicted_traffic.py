"""The traffic of one step of a Setup: the closed form, and what torch adds to it by name.

May import engine.costs. Counts are elements of whole tensors, as in `flows`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.costs import batch_norm, traffic
from engine.costs.causes import Cause
from engine.costs.flows import Flow
from engine.costs.setup import DataParallel, FlatSharding, Setup, Unit
from engine.costs.sharding import buckets, flat_numel, row_shard


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraFlow:
    """Traffic that the closed form does not have; negative when torch sends less."""

    cause: Cause
    flow: Flow


def closed_form(setup: Setup) -> tuple[Flow, ...]:
    """The textbook's traffic: nothing padded, every unit wrapped, no buffers.

    Source: `traffic`, by strategy.
    """
    psi, size = setup.num_parameters, setup.element_bytes
    match setup.strategy:
        case DataParallel(zero_redundancy=True):
            return traffic.zero1(num_parameters=psi, num_ranks=setup.world_size, element_bytes=size)
        case DataParallel() | FlatSharding(sharding_strategy="NO_SHARD"):
            return traffic.ddp(num_parameters=psi, num_ranks=setup.world_size, element_bytes=size)
        case _ if setup.num_replicas > 1:
            return traffic.hybrid(
                num_parameters=psi,
                num_shard_ranks=setup.num_shard_ranks,
                num_replicas=setup.num_replicas,
                resharded=setup.is_resharded,
                element_bytes=size,
            )
        case _:
            return traffic.sharded(
                num_parameters=psi,
                num_ranks=setup.world_size,
                resharded=setup.is_resharded,
                post_forward_ranks=setup.post_forward_ranks,
                element_bytes=size,
            )


def extra_flows(setup: Setup, *, step: int) -> tuple[ExtraFlow, ...]:
    """What torch sends beyond the closed form in the step of that number, from 0.

    Source: torch/csrc/distributed/c10d/reducer.cpp, sync_bucket_indices; `sharding`; `batch_norm`.
    """
    match setup.strategy:
        case DataParallel() as strategy:
            extra = (*_bucket_order(setup, strategy, step), *_unused(setup, strategy))
            buffers = tuple(_buffers(setup))
        case FlatSharding(sharding_strategy="NO_SHARD"):
            extra, buffers = tuple(_padding(setup)), ()
        case _:
            extra, buffers = (*_padding(setup), *_root_kept(setup)), ()
    return (*extra, *buffers, *_sync_batch_norm(setup))


def unit_numel(setup: Setup, unit: Unit) -> int:
    """Elements of one unit as FSDP gathers it, padding included. Source: `sharding`."""
    match setup.strategy:
        case FlatSharding(sharding_strategy="NO_SHARD", use_orig_params=False) | DataParallel():
            return unit.num_parameters
        case FlatSharding(use_orig_params=use_orig_params):
            return flat_numel(
                unit.numels,
                num_ranks=setup.num_shard_ranks,
                use_orig_params=use_orig_params,
                element_bytes=setup.element_bytes,
            )
        case _:
            ranks = setup.num_shard_ranks
            return sum(
                ranks * row_shard(shape, num_ranks=ranks).padded_numel for shape in unit.shapes
            )


def _padding(setup: Setup) -> Iterator[ExtraFlow]:
    padded = sum(unit_numel(setup, unit) for unit in setup.all_units)
    for flow in closed_form(setup):
        is_shard = setup.num_replicas > 1 and flow.op == "all_reduce"
        whole = padded // setup.num_shard_ranks if is_shard else padded
        yield _extra("padding", flow, whole - flow.num_elements)


def _root_kept(setup: Setup) -> Iterator[ExtraFlow]:
    if not setup.is_resharded or setup.root is None:
        return
    again = next(f for f in closed_form(setup) if (f.op, f.phase) == ("all_gather", "backward"))
    if not setup.is_root_resharded:
        yield _extra("root-kept", again, -unit_numel(setup, setup.root))


def _bucket_order(setup: Setup, strategy: DataParallel, step: int) -> Iterator[ExtraFlow]:
    # Once gradients have arrived in a first step, rank 0 tells all in which order to fill buckets.
    if step != 1 or strategy.find_unused_parameters:
        return
    numels = [numel for unit in setup.all_units for numel in unit.numels]
    filled = buckets(
        numels,
        element_bytes=setup.element_bytes,
        bucket_cap_bytes=strategy.bucket_cap_bytes,
    )
    for num_elements in (len(numels) + 1, len(filled)):
        yield ExtraFlow(
            cause="bucket-order",
            flow=Flow(
                op="broadcast",
                phase="forward",
                num_elements=num_elements,
                group_size=setup.world_size,
            ),
        )


def _unused(setup: Setup, strategy: DataParallel) -> Iterator[ExtraFlow]:
    if strategy.find_unused_parameters:
        yield ExtraFlow(
            cause="unused-parameters",
            flow=Flow(
                op="all_reduce",
                phase="backward",
                num_elements=len(setup.shapes),
                group_size=setup.world_size,
            ),
        )


def _buffers(setup: Setup) -> Iterator[ExtraFlow]:
    for norm in setup.norms:
        for flow in batch_norm.ddp_buffers(
            num_channels=norm.num_channels, num_ranks=setup.world_size
        ):
            yield ExtraFlow(cause="buffers", flow=flow)


def _sync_batch_norm(setup: Setup) -> Iterator[ExtraFlow]:
    for norm in setup.norms:
        if norm.is_synced:
            for flow in batch_norm.sync_batch_norm(
                num_channels=norm.num_channels,
                num_ranks=setup.world_size,
                input_needs_gradient=norm.input_needs_gradient,
            ):
                yield ExtraFlow(cause="sync-batch-norm", flow=flow)


def _extra(cause: Cause, like: Flow, num_elements: int) -> ExtraFlow:
    flow = Flow(
        op=like.op,
        phase=like.phase,
        num_elements=num_elements,
        group_size=like.group_size,
        element_bytes=like.element_bytes,
    )
    return ExtraFlow(cause=cause, flow=flow)
