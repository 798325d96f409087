"""One real executor for all engine tests of a session; runs are real ranks in a real sandbox."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import count

import pytest

from engine.events import Event, Outcome, Output
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.program import Detail, Limits, Program
from engine.trace import Trace, fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run that has ended."""

    events: tuple[Event, ...]
    outcome: Outcome
    trace: Trace

    def text(self, rank: int, stream: str = "stdout") -> str:
        """What one rank wrote."""
        return "".join(
            e.text
            for e in self.events
            if isinstance(e, Output) and e.rank == rank and e.stream == stream
        )

    @property
    def codes(self) -> list[str]:
        """Codes of the diagnosis."""
        return [d.code for d in self.outcome.diagnosis]


Runner = Callable[..., Awaitable[Ran]]


async def collect(executor: LocalExecutor, ref: RunRef) -> Ran:
    """Follow a run to its end."""
    events: list[Event] = []
    async for item in executor.stream(ref):
        if not isinstance(item, Queued):
            events.append(item)
    outcome = events[-1]
    assert isinstance(outcome, Outcome)
    return Ran(events=tuple(events), outcome=outcome, trace=fold(events))


@pytest.fixture(scope="session")
async def executor() -> AsyncIterator[LocalExecutor]:
    executor = LocalExecutor(slots=2, num_parked=1)
    await executor.start()
    yield executor
    await executor.close()


@pytest.fixture(scope="session")
def run(executor: LocalExecutor) -> Runner:
    numbers = count()

    async def run_it(
        source: str,
        ranks: int = 1,
        limits: Limits | None = None,
        detail: Detail = "summary",
        simulated_ranks: int | None = None,
    ) -> Ran:
        ref = RunRef(run_id=f"test-{next(numbers)}")
        program = Program(
            source=source,
            world_size=ranks,
            limits=limits or Limits(),
            detail=detail,
            simulated_ranks=simulated_ranks,
        )
        await executor.submit(program, ref)
        return await collect(executor, ref)

    return run_it
