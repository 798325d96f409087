"""The model states of a Setup on one rank: the closed form, and what torch adds to it by name.

May import engine.facts and engine.costs. Two moments are predicted: "forward", the end of a
forward, and "steady", after the optimizer's step and before zero_grad.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from engine.costs.causes import Cause
from engine.costs.optimizer_shards import optimizer_shard
from engine.costs.precision import STEP_BYTES, optimizer, uniform
from engine.costs.predicted_traffic import unit_numel
from engine.costs.setup import DataParallel, FlatSharding, RowSharding, Setup
from engine.costs.zero import model_states
from engine.facts import Category

Moment = Literal["forward", "steady"]
PREDICTED: tuple[Category, ...] = (
    "parameter", "gradient", "optimizer", "buffer", "communication",
)  # fmt: skip
"""Activations and what the program itself holds depend on the model: they have no closed form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraBytes:
    """Bytes that the closed form does not have; negative when torch holds less."""

    cause: Cause
    category: Category
    num_bytes: Fraction


def closed_form_bytes(setup: Setup, category: Category) -> Fraction:
    """The textbook's bytes of one category on one rank. Source: `zero.model_states`."""
    states = model_states(
        num_parameters=setup.num_parameters,
        num_ranks=setup.num_shard_ranks,
        stage=setup.stage,
        precision=uniform(setup.optimizer, element_bytes=setup.element_bytes),
    )
    match category:
        case "parameter":
            return states.parameter_bytes
        case "gradient":
            return states.gradient_bytes
        case "optimizer":
            return states.optimizer_bytes
        case _:
            return Fraction(0)


def extra_bytes(
    setup: Setup, *, rank: int, moment: Moment, has_stepped: bool
) -> tuple[ExtraBytes, ...]:
    """What torch holds beyond the closed form on one rank.

    Source: `sharding`; torch.optim, `step`; arXiv 2006.15704, section 4.2, on buckets;
    torch/csrc/distributed/c10d/reducer.cpp, initialize_local_used_map;
    torch/distributed/fsdp/_fully_shard/_fsdp_param.py, to_sharded_post_forward.
    """
    return (
        *_parameters(setup, moment),
        *_gradients(setup),
        *_optimizer(setup, rank, has_stepped),
        *_buffers(setup),
        *_buckets(setup),
    )


def _padded_numel(setup: Setup) -> int:
    return sum(unit_numel(setup, unit) for unit in setup.all_units)


def _is_sharded(setup: Setup) -> bool:
    return setup.stage >= 2


def _parameters(setup: Setup, moment: Moment) -> Iterator[ExtraBytes]:
    psi, ranks, width = setup.num_parameters, setup.num_shard_ranks, setup.element_bytes
    padded = _padded_numel(setup)
    if not _is_sharded(setup):
        yield _extra("padding", "parameter", width * (padded - psi))
        return
    shard = Fraction(width * padded, ranks)
    if moment == "forward" and setup.stage == 2:
        yield _extra("padding", "parameter", width * (padded - psi))
        yield _extra("shard-beside-whole", "parameter", shard)
        return
    if setup.stage == 2:
        saved = width * (Fraction(psi, ranks) - psi)
        yield _extra("resharded-after-backward", "parameter", saved)
    yield _extra("padding", "parameter", shard - Fraction(width * psi, ranks))
    if moment == "steady":
        return
    if setup.root is not None:
        # Whatever it does afterwards, the root is still whole where its own forward ends.
        yield _extra("root-kept", "parameter", width * unit_numel(setup, setup.root))
    if setup.post_forward_ranks is not None:
        wrapped = width * sum(unit_numel(setup, unit) for unit in setup.units)
        again = Fraction(wrapped, setup.post_forward_ranks)
        yield _extra("shard-after-forward", "parameter", again)


def _gradients(setup: Setup) -> Iterator[ExtraBytes]:
    ranks = setup.num_shard_ranks if _is_sharded(setup) else 1
    padding = Fraction(_padded_numel(setup) - setup.num_parameters, ranks)
    yield _extra("padding", "gradient", setup.element_bytes * padding)


def _optimizer(setup: Setup, rank: int, has_stepped: bool) -> Iterator[ExtraBytes]:
    expected = closed_form_bytes(setup, "optimizer")
    if not has_stepped:
        yield _extra("not-stepped", "optimizer", -expected)
        return
    kept = optimizer(setup.optimizer)
    shard = optimizer_shard(setup, rank=rank)
    states = Fraction(kept.num_states * setup.element_bytes * shard.numel)
    cause: Cause = "padding"
    match setup.strategy:
        case DataParallel(zero_redundancy=True):
            cause = "whole-tensors"
        case RowSharding() | FlatSharding(use_orig_params=True):
            cause = "uneven-shards"
    yield _extra(cause, "optimizer", states - expected)
    if kept.has_step:
        yield _extra("step-counters", "optimizer", STEP_BYTES * shard.num_tensors)


def _buffers(setup: Setup) -> Iterator[ExtraBytes]:
    # running_mean and running_var in float32, num_batches_tracked one int64.
    for norm in setup.norms:
        yield _extra("buffers", "buffer", 2 * 4 * norm.num_channels + 8)


def _buckets(setup: Setup) -> Iterator[ExtraBytes]:
    if not isinstance(setup.strategy, DataParallel):
        return
    if not setup.strategy.gradient_as_bucket_view:
        copies = setup.element_bytes * setup.num_parameters
        yield _extra("bucket-copies", "communication", copies)
    if setup.strategy.find_unused_parameters:
        # One int32 per parameter, to be reduced, and where it is collected.
        yield _extra("unused-parameters", "communication", 2 * 4 * len(setup.shapes))


def _extra(cause: Cause, category: Category, num_bytes: int | Fraction) -> ExtraBytes:
    return ExtraBytes(cause=cause, category=category, num_bytes=Fraction(num_bytes))
