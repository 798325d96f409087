"""Runs a benchmark's own program to its end. May import the engine's seam and leaves."""

from dataclasses import dataclass

from engine.errors import EngineCrashed
from engine.events import Outcome, Output
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that ended ok: what it printed and how many events it had."""

    text: str
    num_events: int
    outcome: Outcome


async def finished(executor: LocalExecutor, program: Program, run_id: str) -> Finished:
    """Run program in a parked slot. Raises: EngineCrashed when it does not end ok."""
    await executor.wait_parked()
    ref = RunRef(run_id=run_id)
    await executor.submit(program, ref)
    text, num_events = "", 0
    async for item in executor.stream(ref):
        if isinstance(item, Queued):
            continue
        num_events += 1
        if isinstance(item, Output):
            text += item.text
        if isinstance(item, Outcome):
            if item.status != "ok":
                raise EngineCrashed(f"the benchmark's program ended {item.status}: {text[-500:]}")
            return Finished(text=text, num_events=num_events, outcome=item)
    raise EngineCrashed("the run ended without an outcome")
