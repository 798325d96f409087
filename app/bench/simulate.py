"""`academy bench simulate`: how long one rank of many takes to simulate.

May import the engine's seam and leaves. Each run starts from a parked slot; medians are given.
"""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.bench.running import finished
from engine.executor.local import LocalExecutor
from engine.program import MIB, Limits, Program

PROGRAM = Path(__file__).parent / "programs" / "simulate.py"
NUM_LAYERS = 18
"""The program's own number, with which it has 1 B parameters."""
_PARAMETERS = re.compile(r"(\d+) parameters")
_WALL_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateResult:
    """Medians for one number of simulated ranks."""

    ranks: int
    num_parameters: int
    seconds: float
    """From submission to outcome."""
    cpu_seconds: float
    added_mib: float
    """Memory that the one process added to what it shares with the warm parent."""


async def measure_simulate(
    rank_counts: Sequence[int], num_layers: int, repeats: int, tell: Callable[[str], None]
) -> list[SimulateResult]:
    """Measure every number of ranks. Raises: EngineCrashed when a run fails."""
    executor = LocalExecutor(slots=1, num_parked=1)
    await executor.start()
    try:
        results = []
        for ranks in rank_counts:
            tell(f"{ranks} ranks: {repeats} simulations")
            runs = [await _simulate(executor, ranks, num_layers, n) for n in range(repeats)]
            results.append(_median(runs))
        return results
    finally:
        await executor.close()


async def _simulate(
    executor: LocalExecutor, ranks: int, num_layers: int, number: int
) -> SimulateResult:
    await executor.wait_parked()
    source = PROGRAM.read_text(encoding="utf-8")
    own = f"NUM_LAYERS = {NUM_LAYERS}\n"
    assert own in source, "the program says its number of layers in one place"
    program = Program(
        source=source.replace(own, f"NUM_LAYERS = {num_layers}\n"),
        world_size=1,
        simulated_ranks=ranks,
        limits=Limits(wall_s=_WALL_LIMIT_S, cpu_s=int(_WALL_LIMIT_S)),
    )
    begin_s = time.perf_counter()
    run = await finished(executor, program, f"simulate-{ranks}-{number}")
    seconds = time.perf_counter() - begin_s
    found = _PARAMETERS.search(run.text)
    assert found, "the program prints its number of parameters"
    return SimulateResult(
        ranks=ranks,
        num_parameters=int(found[1]),
        seconds=seconds,
        cpu_seconds=run.outcome.cpu_s,
        added_mib=run.outcome.ranks[0].peak_bytes / MIB,
    )


def _median(runs: Sequence[SimulateResult]) -> SimulateResult:
    return SimulateResult(
        ranks=runs[0].ranks,
        num_parameters=runs[0].num_parameters,
        seconds=round(statistics.median(r.seconds for r in runs), 3),
        cpu_seconds=round(statistics.median(r.cpu_seconds for r in runs), 3),
        added_mib=round(statistics.median(r.added_mib for r in runs), 1),
    )
