"""The fold of statistics: what the global batch has, from what every rank measured."""

import math

import pytest

from engine.events import Statistic, StatisticName
from engine.trace import ChannelStatistics, combine, layer_steps


def part(values: list[float]) -> ChannelStatistics:
    mean = sum(values) / len(values)
    var = sum((v - mean) ** 2 for v in values) / len(values)
    return ChannelStatistics(mean=(mean,), var=(var,), count=len(values))


def test_union_of_unequal_parts_is_the_whole() -> None:
    parts = [[1.0, 2.0, 4.0], [10.0], [-3.0, 0.5]]
    whole = part([value for values in parts for value in values])
    combined = combine([part(values) for values in parts])
    assert combined is not None
    assert combined.mean == pytest.approx(whole.mean)
    assert combined.var == pytest.approx(whole.var)
    assert combined.count == 6


def test_variance_survives_a_large_mean() -> None:
    combined = combine([part([1e8 + 1, 1e8 - 1]), part([1e8 + 2, 1e8 - 2])])
    assert combined is not None
    assert combined.var[0] == pytest.approx(2.5)


def test_empty_parts_do_not_count() -> None:
    empty = ChannelStatistics(mean=(0.0,), var=(0.0,), count=0)
    assert combine([empty, part([3.0, 5.0])]) == part([3.0, 5.0])
    assert combine([empty]) is None
    assert combine([]) is None


def statistic(
    rank: int, name: StatisticName, value: float, scope: str = "local", seq: int = 0
) -> Statistic:
    return Statistic(
        rank=rank,
        seq=seq,
        at_ns=0,
        module="bn",
        name=name,
        scope="global" if scope == "global" else "local",
        values=(value,),
        phase="forward",
        line=1,
    )


def test_forwards_are_paired_across_ranks_whatever_order_they_arrive_in() -> None:
    events = []
    for rank, means in ((0, (1.0, 2.0)), (1, (3.0, 4.0))):
        for mean in means:
            events += [
                statistic(rank, "mean", mean),
                statistic(rank, "var", 0.0),
                statistic(rank, "count", 2.0),
            ]
    first, second = layer_steps(events)
    assert (first.index, second.index) == (0, 1)
    assert {rank: s.mean for rank, s in first.local.items()} == {0: (1.0,), 1: (3.0,)}
    assert second.batch is not None
    assert second.batch.mean == (3.0,)
    assert second.used == second.local


def test_a_layer_that_one_rank_skipped_shows_only_the_others() -> None:
    events = [statistic(1, "mean", 5.0), statistic(1, "var", 1.0), statistic(1, "count", 2.0)]
    (step,) = layer_steps(events)
    assert set(step.local) == {1}
    assert step.batch is not None
    assert math.isclose(step.batch.var[0], 1.0)
