"""Traffic of real 4-rank training steps against its prediction."""

import pytest

from engine.costs.compare_traffic import Amount, TrafficRow, compare_traffic
from engine.costs.steps import step_spans
from tests.engine.costs.conftest import Train
from tests.engine.costs.programs import EQUAL_PROGRAMS, UNEVEN_PROGRAMS

PSI = 8 * (64 * 64 + 64)
ALL_PROGRAMS = {f"equal {name}": p for name, p in EQUAL_PROGRAMS.items()} | {
    f"uneven {name}": p for name, p in UNEVEN_PROGRAMS.items()
}


def measured(rows: tuple[TrafficRow, ...]) -> dict[str, int]:
    """Elements per op."""
    found: dict[str, int] = {}
    for row in rows:
        found[row.key.op] = found.get(row.key.op, 0) + row.measured.num_elements
    return found


def causes(rows: tuple[TrafficRow, ...]) -> dict[str, int]:
    """Elements per cause."""
    found: dict[str, int] = {}
    for row in rows:
        for caused in row.causes:
            found[caused.cause] = found.get(caused.cause, 0) + caused.amount.num_elements
    return found


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("ddp", {"all_reduce": PSI}),
        ("ddp-view", {"all_reduce": PSI}),
        ("zero1", {"all_reduce": PSI, "broadcast": PSI}),
        ("shard-grad-op", {"all_gather": PSI, "reduce_scatter": PSI}),
        ("full-shard", {"all_gather": 2 * PSI, "reduce_scatter": PSI}),
        ("hybrid-shard", {"all_gather": 2 * PSI, "reduce_scatter": PSI, "all_reduce": PSI // 2}),
        ("fsdp2-false", {"all_gather": PSI, "reduce_scatter": PSI}),
        ("fsdp2-true", {"all_gather": 2 * PSI, "reduce_scatter": PSI}),
        ("fsdp2-2", {"all_gather": 2 * PSI, "reduce_scatter": PSI}),
        ("fsdp2-hsdp", {"all_gather": 2 * PSI, "reduce_scatter": PSI, "all_reduce": PSI // 2}),
    ],
)
async def test_eight_equal_layers_send_the_published_elements(
    train: Train, name: str, published: dict[str, int]
) -> None:
    trained = EQUAL_PROGRAMS[name]
    rows = compare_traffic(await train(trained), trained.setup)
    assert measured(rows) == published
    assert causes(rows) == {}
    assert [row.unexplained for row in rows] == [Amount()] * len(rows)


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("name", ALL_PROGRAMS)
async def test_every_step_is_explained_on_every_rank(train: Train, name: str, rank: int) -> None:
    trained = ALL_PROGRAMS[name]
    trace = await train(trained)
    assert len(step_spans(trace, rank=rank)) == 3
    for step in range(3):
        rows = compare_traffic(trace, trained.setup, rank=rank, step=step)
        left = {row.key: row.unexplained for row in rows if row.unexplained != Amount()}
        assert left == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Units of 72, 90 and 50 elements; four ranks pad 90 and 50 by 2 each, in every collective.
        ("full-shard", {"padding": 3 * 4, "root-kept": -72}),
        # Rows of 9, 9 and 5 padded to 12, 12 and 8: 24, 30 and 30 elements more.
        ("fsdp2", {"padding": 3 * 84, "root-kept": -96}),
        ("fsdp2-root-true", {"padding": 3 * 84}),
        ("fsdp2-2", {"padding": 3 * 84}),
        ("no-shard", {}),
        ("zero1", {}),
        ("ddp-buckets", {}),
        ("ddp-unused", {"unused-parameters": 6}),
        ("ddp-norms", {"buffers": 2 * 15, "sync-batch-norm": 2 * (4 * 15 + 14)}),
        # 140 parameters in rows of 7, padded to 8; the root is gathered once.
        ("fsdp2-norms", {"padding": 3 * 20, "root-kept": -160, "sync-batch-norm": 148}),
    ],
)
async def test_difference_to_the_closed_form_has_these_causes(
    train: Train, name: str, expected: dict[str, int]
) -> None:
    trained = UNEVEN_PROGRAMS[name]
    assert causes(compare_traffic(await train(trained), trained.setup)) == expected


async def test_bucket_order_is_agreed_before_the_second_forward(train: Train) -> None:
    for name in ("ddp-buckets", "ddp-large"):
        trained = UNEVEN_PROGRAMS[name]
        trace = await train(trained)
        found = [causes(compare_traffic(trace, trained.setup, step=step)) for step in range(3)]
        # Six parameters and how many of them each of two buckets has, in 7 + 2 numbers.
        assert found == [{}, {"bucket-order": 9}, {}]


async def test_unpredicted_traffic_stays_unexplained(train: Train) -> None:
    right, wrong = EQUAL_PROGRAMS["fsdp2-true"], EQUAL_PROGRAMS["fsdp2-false"]
    rows = compare_traffic(await train(right), wrong.setup)
    left = [row.unexplained.num_elements for row in rows if row.unexplained != Amount()]
    assert left == [PSI]


async def test_step_that_never_ran_is_refused(train: Train) -> None:
    trained = EQUAL_PROGRAMS["ddp"]
    trace = await train(trained)
    with pytest.raises(ValueError, match=r"^step must be one of the 3 steps of rank 1, not 3"):
        compare_traffic(trace, trained.setup, rank=1, step=3)
