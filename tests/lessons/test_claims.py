"""What the lesson's prose claims is what its cells measure, on real ranks."""

import re
from collections import Counter
from pathlib import Path

import pytest

from app.lessons import Lesson, load_catalogue
from engine.events import Collective
from tests.engine.conftest import Ran, Runner

LESSONS = Path(__file__).parents[2] / "lessons"
LESSON_ID = "synchronized-batch-norm-and-sharded-state"
NUM_RANKS = 4
NUM_CHANNELS = 3
FLOAT64_BYTES, FLOAT32_BYTES = 8, 4


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return load_catalogue(LESSONS).lesson(LESSON_ID)


def means(ran: Ran, scope: str, module: str | None = None) -> dict[int, tuple[float, ...]]:
    """The mean [C] that each rank reported."""
    return {
        event.rank: event.values
        for event in ran.trace.statistics
        if event.name == "mean" and event.scope == scope and module in (None, event.module)
    }


def calls(ran: Ran, rank: int, phase: str) -> list[Collective]:
    return [c for c in ran.trace.collectives if c.rank == rank and c.phase == phase]


async def test_plain_statistics_differ_on_every_rank(run: Runner, lesson: Lesson) -> None:
    ran = await run(lesson.cell("plain-batch-norm").source, ranks=NUM_RANKS)
    assert len(set(means(ran, "local").values())) == NUM_RANKS
    assert means(ran, "global") == {}
    assert ran.trace.collectives == []
    for rank in range(NUM_RANKS):
        distance = re.search(r"distance from the whole batch's: (\d+\.\d+)", ran.text(rank))
        assert distance is not None
        assert float(distance[1]) > 0.1


async def test_synchronised_statistics_agree_and_are_the_batch_s(
    run: Runner, lesson: Lesson
) -> None:
    ran = await run(lesson.cell("sync-batch-norm").source, ranks=NUM_RANKS)
    synced = means(ran, "global")
    assert sorted(synced) == list(range(NUM_RANKS))
    assert len(set(synced.values())) == 1
    modules = {s.module for s in ran.trace.statistics if s.scope == "global"}
    local = means(ran, "local", module=modules.pop())
    whole = [sum(channel) / NUM_RANKS for channel in zip(*local.values(), strict=True)]
    assert synced[0] == pytest.approx(whole, abs=1e-12)


async def test_one_layer_sends_2c_plus_1_forward_and_2c_backward(
    run: Runner, lesson: Lesson
) -> None:
    ran = await run(lesson.cell("sync-batch-norm").source, ranks=NUM_RANKS)
    for rank in range(NUM_RANKS):
        (forward,) = calls(ran, rank, "forward")
        (backward,) = calls(ran, rank, "backward")
        assert forward.op == "all_gather"
        assert forward.input_bytes == (2 * NUM_CHANNELS + 1) * FLOAT64_BYTES
        assert backward.op == "all_reduce"
        assert backward.input_bytes == 2 * NUM_CHANNELS * FLOAT64_BYTES


async def test_bytes_that_the_cell_predicts_are_those_measured(run: Runner, lesson: Lesson) -> None:
    ran = await run(lesson.cell("what-a-layer-sends").source, ranks=NUM_RANKS)
    gathered = [int(found) for found in re.findall(r"all_gather (\d+) bytes", ran.text(0))]
    reduced = [int(found) for found in re.findall(r"all_reduce (\d+) bytes", ran.text(0))]
    assert len(gathered) == len(reduced) == 2
    for rank in range(NUM_RANKS):
        forward = [c.input_bytes for c in calls(ran, rank, "forward")]
        backward = [c.input_bytes for c in calls(ran, rank, "backward")]
        assert forward == gathered
        assert backward == reduced[::-1]


async def test_order_convert_then_wrap_leaves_every_rank_with_the_same_model(
    run: Runner, lesson: Lesson
) -> None:
    ran = await run(lesson.cell("convert-then-wrap").source, ranks=NUM_RANKS)
    synced = [event for event in ran.trace.statistics if event.scope == "global"]
    assert {event.rank for event in synced} == set(range(NUM_RANKS))
    assert {"device-ids-dropped", "syncbn-on-cpu"} <= {note.code for note in ran.trace.notes}
    means_per_rank = Counter(event.rank for event in synced if event.name == "mean")
    assert set(means_per_rank.values()) == {2}
    sums = {found for r in range(NUM_RANKS) for found in re.findall(r"sum to (\S+)", ran.text(r))}
    assert len(sums) == 1


@pytest.mark.parametrize("cell_id", ["who-owns-which-rows", "meet-fsdp"])
async def test_shards_add_up_to_the_model(run: Runner, lesson: Lesson, cell_id: str) -> None:
    ran = await run(lesson.cell(cell_id).source, ranks=NUM_RANKS)
    held = []
    for rank in range(NUM_RANKS):
        found = re.search(r"(?:owns|holds) (\d+) of ", ran.text(rank))
        assert found is not None, ran.text(rank)
        held.append(int(found[1]))
    whole = {
        "who-owns-which-rows": 16 * 32 + 32 + 32 * 8 + 8,
        "meet-fsdp": 64 * 256 + 256 + 256 * 4 + 4,
    }
    padding = NUM_RANKS - 1
    assert whole[cell_id] <= sum(held) <= whole[cell_id] + padding
    assert max(held) <= whole[cell_id] / NUM_RANKS * 1.05


async def test_one_unit_is_gathered_once_a_step_and_kept(run: Runner, lesson: Lesson) -> None:
    ran = await run(lesson.cell("meet-fsdp").source, ranks=NUM_RANKS)
    for rank in range(NUM_RANKS):
        assert [c.op for c in calls(ran, rank, "forward")] == ["all_gather"] * 3
        assert [c.op for c in calls(ran, rank, "backward")] == ["reduce_scatter"] * 3


async def test_wrapped_blocks_are_gathered_again_in_backward(run: Runner, lesson: Lesson) -> None:
    ran = await run(lesson.cell("gathered-twice").source, ranks=NUM_RANKS)
    (shard,) = (int(found) for found in re.findall(r"(\d+) bytes as a shard", ran.text(0)))
    for rank in range(NUM_RANKS):
        forward, backward = calls(ran, rank, "forward"), calls(ran, rank, "backward")
        assert Counter(c.op for c in forward) == {"all_gather": 3}
        assert Counter(c.op for c in backward) == {"all_gather": 3, "reduce_scatter": 3}
        assert {c.input_bytes for c in forward} == {shard}


async def test_each_stage_holds_what_its_formula_says(run: Runner, lesson: Lesson) -> None:
    """Source: arXiv 1910.02054, section 3, for float32 Adam; `step` adds 4 bytes per tensor."""
    ran = await run(lesson.cell("zero-stages").source, ranks=NUM_RANKS)
    rows = re.findall(
        r"^(DDP|ZeRO|FSDP).*?([\d,]+) +([\d,]+) +([\d,]+)$", ran.text(0), re.MULTILINE
    )
    held = [[int(cell.replace(",", "")) for cell in row[1:]] for row in rows]
    state = 8 * (64 * 64 + 64) * FLOAT32_BYTES
    steps = 16 * FLOAT32_BYTES
    quarter = state // NUM_RANKS
    assert held[0] == [state, state, 2 * state + steps]
    assert held[1][:2] == [state, state]
    assert held[1][2] == pytest.approx(2 * quarter, rel=0.1)
    assert held[2] == [quarter, quarter, 2 * quarter + steps]
