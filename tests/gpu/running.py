"""Runs programs of the GPU checks through the engine, without pytest: a machine may lack it."""

from dataclasses import dataclass

from engine.events import Event, Outcome, Output, Started
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.program import Detail, Device, Limits, Program

LIMITS = Limits(wall_s=90.0, cpu_s=180)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run that has ended."""

    events: tuple[Event, ...]
    outcome: Outcome

    @property
    def started(self) -> Started:
        """The first event."""
        first = self.events[0]
        assert isinstance(first, Started)
        return first

    def text(self, stream: str = "stdout") -> str:
        """What rank 0 wrote."""
        own = (e for e in self.events if isinstance(e, Output) and e.rank == 0)
        return "".join(event.text for event in own if event.stream == stream)


async def ended(executor: LocalExecutor, name: str, program: Program) -> Ran:
    """Run a program to its end, whichever. Raises: DeviceUnavailable."""
    ref = RunRef(run_id=name)
    await executor.submit(program, ref)
    events = [item async for item in executor.stream(ref) if not isinstance(item, Queued)]
    outcome = events[-1]
    assert isinstance(outcome, Outcome)
    return Ran(events=tuple(events), outcome=outcome)


async def ran(
    executor: LocalExecutor,
    name: str,
    source: str,
    *,
    ranks: int = 1,
    device: Device = "cuda",
    detail: Detail = "summary",
) -> Ran:
    """Run a program to its end, which must be a good one."""
    program = Program(source=source, world_size=ranks, device=device, detail=detail, limits=LIMITS)
    done = await ended(executor, name, program)
    said = [item.message for item in done.outcome.diagnosis]
    assert done.outcome.status == "ok", f"{done.outcome.status}: {said} {done.text('stderr')}"
    return done
