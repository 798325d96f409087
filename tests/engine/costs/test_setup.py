"""Descriptions of a training: what they refuse, and what adds up over ranks."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.costs.flows import elements
from engine.costs.optimizer_shards import optimizer_shard
from engine.costs.predicted_traffic import closed_form, extra_flows
from engine.costs.setup import DataParallel, FlatSharding, RowSharding, Setup, Strategy, Unit
from engine.costs.steps import step_spans
from engine.trace import Trace

SHAPES = st.lists(
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4
).map(tuple)
UNITS = st.lists(SHAPES.map(lambda shapes: Unit(shapes=shapes)), min_size=1, max_size=4).map(tuple)
CUTTING: tuple[Strategy, ...] = (
    DataParallel(zero_redundancy=True),
    FlatSharding(use_orig_params=True),
    RowSharding(),
)


@given(UNITS, st.integers(1, 8), st.sampled_from(CUTTING))
def test_optimizers_of_all_ranks_keep_every_parameter_once(
    units: tuple[Unit, ...], world_size: int, strategy: Strategy
) -> None:
    setup = Setup(strategy=strategy, units=units, world_size=world_size)
    kept = sum(optimizer_shard(setup, rank=rank).numel for rank in range(world_size))
    assert kept == setup.num_parameters


@given(UNITS, st.integers(1, 8), st.sampled_from((FlatSharding(), RowSharding())))
def test_padded_traffic_is_whole_shards(
    units: tuple[Unit, ...], world_size: int, strategy: Strategy
) -> None:
    setup = Setup(strategy=strategy, units=units, world_size=world_size)
    flows = [*closed_form(setup), *(extra.flow for extra in extra_flows(setup, step=2))]
    padded = elements(flows, "reduce_scatter")
    assert padded % world_size == 0
    assert padded >= setup.num_parameters
    assert elements(flows, "all_gather") == 2 * padded


def test_trace_without_steps_has_no_spans() -> None:
    assert step_spans(Trace(), rank=0) == ()


UNIT = Unit(shapes=((4, 4),))


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("world_size", lambda: Setup(strategy=DataParallel(), units=(UNIT,), world_size=0)),
        (
            "num_replicas",
            lambda: Setup(strategy=RowSharding(), units=(UNIT,), world_size=4, num_replicas=3),
        ),
        (
            "element_bytes",
            lambda: Setup(strategy=RowSharding(), units=(UNIT,), world_size=4, element_bytes=0),
        ),
        (
            "reshard_after_forward",
            lambda: Setup(
                strategy=RowSharding(reshard_after_forward=3), units=(UNIT,), world_size=4
            ),
        ),
        ("sharding_strategy", lambda: FlatSharding(sharding_strategy="FULL")),  # type: ignore[arg-type]
    ],
)
def test_bad_argument_is_named(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"^{argument} "):
        call()
