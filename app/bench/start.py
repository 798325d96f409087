"""`academy bench start`: ranks from a parked slot against torchrun on the same file.

May import the engine's seam and leaves. Both sides run the same program on the same machine, one
after the other, several times; medians are compared.
"""

import asyncio
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineCrashed
from engine.events import Outcome, Output
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.executor.slots import clean_environment
from engine.program import Program

PROGRAM = Path(__file__).parent / "programs" / "start.py"
_PRIVATE = re.compile(r"private_mib ([\d.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run on either side."""

    wall_s: float
    cpu_s: float
    first_output_s: float | None = None
    private_mib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartResult:
    """Medians for one number of ranks."""

    ranks: int
    wall_ms: float
    torchrun_wall_ms: float
    wall_ratio: float
    cpu_ratio: float
    first_output_ms: float
    private_mib: float


async def measure_start(
    rank_counts: list[int], repeats: int, tell: Callable[[str], None]
) -> list[StartResult]:
    """Measure every number of ranks. Raises: EngineCrashed when a run of either side fails."""
    executor = LocalExecutor(slots=1, num_parked=1)
    await executor.start()
    try:
        results = []
        for ranks in rank_counts:
            tell(f"{ranks} ranks: {repeats} runs from a parked slot")
            ours = [await _run_ours(executor, ranks, number) for number in range(repeats)]
            theirs = []
            for number in range(max(1, repeats // 2)):
                tell(f"{ranks} ranks: torchrun {number + 1}")
                theirs.append(await asyncio.to_thread(_run_torchrun, ranks))
            results.append(_compare(ranks, ours, theirs))
        return results
    finally:
        await executor.close()


def _compare(ranks: int, ours: list[Sample], theirs: list[Sample]) -> StartResult:
    wall_s = statistics.median(s.wall_s for s in ours)
    torchrun_wall_s = statistics.median(s.wall_s for s in theirs)
    cpu_s = statistics.median(s.cpu_s for s in ours)
    torchrun_cpu_s = statistics.median(s.cpu_s for s in theirs)
    return StartResult(
        ranks=ranks,
        wall_ms=round(wall_s * 1e3, 1),
        torchrun_wall_ms=round(torchrun_wall_s * 1e3, 1),
        wall_ratio=round(torchrun_wall_s / wall_s, 1),
        cpu_ratio=round(torchrun_cpu_s / max(cpu_s, 1e-3), 1),
        first_output_ms=round(statistics.median(s.first_output_s or 0.0 for s in ours) * 1e3, 1),
        private_mib=round(statistics.median(s.private_mib or 0.0 for s in ours), 1),
    )


async def _run_ours(executor: LocalExecutor, ranks: int, number: int) -> Sample:
    """One run, from the moment of submission; the slot is parked before the clock starts."""
    await executor.wait_parked()
    ref = RunRef(run_id=f"start-{ranks}-{number}")
    program = Program(source=PROGRAM.read_text(encoding="utf-8"), world_size=ranks)
    first_output_s, text = None, ""
    begin_s = time.perf_counter()
    await executor.submit(program, ref)
    async for item in executor.stream(ref):
        if isinstance(item, Queued):
            continue
        if isinstance(item, Output):
            first_output_s = first_output_s or time.perf_counter() - begin_s
            text += item.text
        if isinstance(item, Outcome):
            if item.status != "ok":
                raise EngineCrashed(f"the benchmark's program ended {item.status}: {text[-500:]}")
            return Sample(
                wall_s=time.perf_counter() - begin_s,
                cpu_s=item.cpu_s,
                first_output_s=first_output_s,
                private_mib=statistics.median(float(v) for v in _PRIVATE.findall(text)),
            )
    raise EngineCrashed("the run ended without an outcome")


def _run_torchrun(ranks: int) -> Sample:
    """One run under torchrun, with its CPU time and that of all its children."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin_s = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own program
        [*command, str(PROGRAM)],
        env=clean_environment(os.environ) | {"HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    wall_s = time.perf_counter() - begin_s
    if done.returncode:
        raise EngineCrashed(f"torchrun failed: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Sample(wall_s=wall_s, cpu_s=cpu_s)
