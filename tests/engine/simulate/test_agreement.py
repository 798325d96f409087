"""What a simulated rank 0 sends and holds is what a real rank 0 does: calls, bytes, moments."""

from pathlib import Path

import pytest

from engine.facts import MemoryFacts
from tests.engine.conftest import Ran, Runner

PROGRAMS = Path(__file__).parents[1] / "torch_programs" / "simulated"
MAX_REAL_RUNS = 3
"""gloo's threads may let go of a buffer a moment later than usual: such a run is run again."""

CASES = [
    ("data_parallel", 2),
    ("data_parallel", 4),
    ("data_parallel", 8),
    ("zero_and_sync_batch_norm", 2),
    ("zero_and_sync_batch_norm", 4),
    ("fsdp1", 2),
    ("fsdp1", 4),
    ("fully_shard_again", 2),
    ("fully_shard_again", 4),
    ("fully_shard_again", 8),
    ("fully_shard_kept", 2),
    ("fully_shard_kept", 4),
    ("meshes", 4),
    ("collectives", 2),
    ("collectives", 4),
]


def calls(ran: Ran) -> list[tuple[object, ...]]:
    """The collectives of rank 0 in the order in which they were called."""
    own = sorted((c for c in ran.trace.collectives if c.rank == 0), key=lambda c: c.at_ns)
    return [
        (
            (c.op, c.dtype, c.input_bytes, c.output_bytes),
            (c.group_size, c.group_ranks, c.group_seq, c.peer),
            (c.phase, c.module, c.line),
        )
        for c in own
    ]


def held(facts: MemoryFacts) -> tuple[object, ...]:
    """Where it was measured, and bytes by category."""
    return (
        facts.phase,
        facts.module,
        facts.line,
        facts.parameter_bytes,
        facts.gradient_bytes,
        facts.optimizer_bytes,
        facts.activation_bytes,
        facts.buffer_bytes,
        facts.communication_bytes,
        facts.other_bytes,
        facts.peak_bytes,
    )


def memory(ran: Ran) -> list[tuple[object, ...]]:
    """What rank 0 held at every boundary, and at its peak with all that was alive then."""
    peak = ran.trace.peaks[0]
    boundaries = [held(m) for m in ran.trace.memory if m.rank == 0]
    return [*boundaries, held(peak), tuple(sorted(map(repr, peak.held)))]


@pytest.mark.parametrize(("name", "ranks"), CASES, ids=lambda value: str(value))
async def test_simulated_rank_equals_the_real_one(run: Runner, name: str, ranks: int) -> None:
    source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    simulated = await run(source, simulated_ranks=ranks)
    assert simulated.outcome.status == "ok", simulated.text(0, "stderr")
    assert len(simulated.outcome.ranks) == 1
    for attempt in range(MAX_REAL_RUNS):
        real = await run(source, ranks=ranks)
        assert real.outcome.status == "ok", real.text(0, "stderr")
        assert calls(simulated) == calls(real)
        if memory(simulated) == memory(real) or attempt == MAX_REAL_RUNS - 1:
            break
    assert memory(simulated) == memory(real)
    assert calls(real)
