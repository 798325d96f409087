"""Model states that real ranks hold against their prediction."""

import pytest

from engine.costs.compare_memory import MemoryRow, compare_memory
from tests.engine.costs.conftest import Train
from tests.engine.costs.programs import EQUAL_PROGRAMS, UNEVEN_PROGRAMS

PSI_BYTES = 4 * 8 * (64 * 64 + 64)
ALL_PROGRAMS = {f"equal {name}": p for name, p in EQUAL_PROGRAMS.items()} | {
    f"uneven {name}": p for name, p in UNEVEN_PROGRAMS.items()
}


def left(rows: tuple[MemoryRow, ...]) -> dict[str, float]:
    """Unexplained bytes per category."""
    return {row.category: float(row.unexplained_bytes) for row in rows if row.unexplained_bytes}


def named(rows: tuple[MemoryRow, ...]) -> dict[str, dict[str, float]]:
    """Bytes per category and cause."""
    return {
        row.category: {caused.cause: float(caused.num_bytes) for caused in row.causes}
        for row in rows
        if row.causes
    }


@pytest.mark.parametrize(
    ("name", "units_of_4_psi", "expected"),
    [
        (
            "ddp",
            (1, 1, 2),
            {"optimizer": {"step-counters": 64}, "communication": {"bucket-copies": PSI_BYTES}},
        ),
        ("ddp-view", (1, 1, 2), {"optimizer": {"step-counters": 64}}),
        # Weights and biases of eight layers on four ranks: two of each.
        ("zero1", (1, 1, 0.5), {"optimizer": {"step-counters": 16}}),
        (
            "shard-grad-op",
            (0.25, 0.25, 0.5),
            {
                "parameter": {"resharded-after-backward": -0.75 * PSI_BYTES},
                "optimizer": {"step-counters": 32},
            },
        ),
        (
            "fsdp2-false",
            (0.25, 0.25, 0.5),
            {
                "parameter": {"resharded-after-backward": -0.75 * PSI_BYTES},
                "optimizer": {"step-counters": 64},
            },
        ),
        ("full-shard", (0.25, 0.25, 0.5), {"optimizer": {"step-counters": 32}}),
        ("fsdp2-true", (0.25, 0.25, 0.5), {"optimizer": {"step-counters": 64}}),
    ],
)
async def test_eight_equal_layers_hold_the_published_units(
    train: Train,
    name: str,
    units_of_4_psi: tuple[float, float, float],
    expected: dict[str, dict[str, float]],
) -> None:
    trained = EQUAL_PROGRAMS[name]
    rows = compare_memory(await train(trained), trained.setup)
    held = {row.category: row.measured_bytes for row in rows}
    counters = expected["optimizer"]["step-counters"]
    states = (held["parameter"], held["gradient"], held["optimizer"] - counters)
    assert tuple(num_bytes / PSI_BYTES for num_bytes in states) == units_of_4_psi
    assert named(rows) == expected


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("name", ALL_PROGRAMS)
async def test_steady_state_is_explained_to_the_byte(train: Train, name: str, rank: int) -> None:
    trained = ALL_PROGRAMS[name]
    trace = await train(trained)
    for step in range(3):
        assert left(compare_memory(trace, trained.setup, rank=rank, step=step)) == {}


async def test_shards_that_do_not_divide_are_padded_and_uneven(train: Train) -> None:
    trained = UNEVEN_PROGRAMS["fsdp2"]
    trace = await train(trained)
    # Rows of 9, 9 and 5 on four ranks: 3, 3 and 2 each but for the last rank, which has none.
    first, last = (named(compare_memory(trace, trained.setup, rank=rank)) for rank in (0, 3))
    padding = 4 * (296 - 212) / 4
    assert first["parameter"] == first["gradient"] == {"padding": padding}
    assert first["optimizer"] == {"uneven-shards": 8 * (74 - 53), "step-counters": 24}
    assert last["optimizer"] == {"uneven-shards": 8 * (0 - 53), "step-counters": 24}


async def test_whole_tensors_make_ranks_unequal(train: Train) -> None:
    trained = UNEVEN_PROGRAMS["zero1"]
    trace = await train(trained)
    differences = [
        named(compare_memory(trace, trained.setup, rank=rank))["optimizer"]["whole-tensors"]
        for rank in range(4)
    ]
    # Tensors of 81, 63, 45, 9, 9 and 5 elements: the three small ones go to the fourth rank.
    assert differences == [8 * (numel - 53) for numel in (81, 63, 45, 23)]


async def test_states_that_step_has_not_made_are_named(train: Train) -> None:
    trained = EQUAL_PROGRAMS["ddp"]
    rows = compare_memory(await train(trained), trained.setup, step=0, moment="forward")
    assert named(rows) == {"optimizer": {"not-stepped": -2 * PSI_BYTES}}


async def test_unpredicted_bytes_stay_unexplained(train: Train) -> None:
    right, wrong = EQUAL_PROGRAMS["ddp"], EQUAL_PROGRAMS["zero1"]
    rows = compare_memory(await train(right), wrong.setup)
    assert left(rows) == {"optimizer": 1.5 * PSI_BYTES + 48, "communication": PSI_BYTES}


@pytest.mark.parametrize("name", ALL_PROGRAMS)
async def test_end_of_forward_is_explained_to_the_byte(train: Train, name: str) -> None:
    trained = ALL_PROGRAMS[name]
    trace = await train(trained)
    for step in range(3):
        assert left(compare_memory(trace, trained.setup, step=step, moment="forward")) == {}
