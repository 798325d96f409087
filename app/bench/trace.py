"""`academy bench trace`: what tracing costs a training step.

May import the engine's seam and leaves. The same program runs traced and untraced in turn, each
in a fresh sandbox; the medians of its own clock are compared.
"""

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.bench.running import finished
from engine.errors import EngineCrashed
from engine.executor.local import LocalExecutor
from engine.program import MIB, Detail, Limits, Program

PROGRAM = Path(__file__).parent / "programs" / "trace.py"
NUM_RANKS = 4
LIMITS = Limits(wall_s=120, cpu_s=240, memory_bytes=4096 * MIB)
_STEP = re.compile(r"step_ms ([\d.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSize:
    """What is trained: steps per run, and width of a 6-block transformer (512: 19 M parameters).

    A step's ops are as many at every width, so the narrower the model the dearer the tracing.
    """

    num_steps: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """Medians over runs of the slowest rank's mean step."""

    overhead_ratio: float
    """Traced at the default level, over untraced."""
    untraced_step_ms: float
    traced_step_ms: float
    events_per_step: float


async def measure_trace(size: TraceSize, repeats: int, tell: Callable[[str], None]) -> TraceResult:
    """Measure a 4-rank FSDP2 step. Raises: EngineCrashed when a run fails."""
    executor = LocalExecutor(slots=1, num_parked=1)
    await executor.start()
    steps_ms: dict[Detail, list[float]] = {"off": [], "summary": []}
    num_events = 0
    try:
        await _step(executor, size, "summary", "warm-up")
        for number in range(repeats):
            for detail in steps_ms:
                tell(f"run {number + 1} of {repeats}, tracing {detail}")
                step_ms, num_events = await _step(executor, size, detail, f"{detail}-{number}")
                steps_ms[detail].append(step_ms)
    finally:
        await executor.close()
    untraced, traced = (statistics.median(values) for values in steps_ms.values())
    return TraceResult(
        overhead_ratio=round(traced / untraced, 3),
        untraced_step_ms=round(untraced, 1),
        traced_step_ms=round(traced, 1),
        events_per_step=round(num_events / size.num_steps, 1),
    )


async def _step(
    executor: LocalExecutor, size: TraceSize, detail: Detail, name: str
) -> tuple[float, int]:
    """Milliseconds of one step on the slowest rank, and events of the whole run."""
    source = PROGRAM.read_text(encoding="utf-8")
    numbers = f"NUM_STEPS, WIDTH = {size.num_steps}, {size.width}"
    source = source.replace("NUM_STEPS, WIDTH = 8, 512", numbers, 1)
    program = Program(source=source, world_size=NUM_RANKS, detail=detail, limits=LIMITS)
    done = await finished(executor, program, f"trace-{name}")
    times = [float(value) for value in _STEP.findall(done.text)]
    if len(times) != NUM_RANKS:
        raise EngineCrashed(f"the benchmark's program printed {done.text[-500:]!r}")
    return max(times), done.num_events
