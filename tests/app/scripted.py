"""An executor that a test plays by hand, for states that no real run can be held in."""

import asyncio
from collections.abc import AsyncIterator

from engine.errors import EngineCrashed, SandboxUnavailable
from engine.events import Outcome, Output, Started, Status
from engine.executor import Capacity, Health, RunRef, StreamItem
from engine.program import Check, Program


class ScriptedExecutor:
    """Implements the seam; items are whatever the test puts."""

    def __init__(self, problem: SandboxUnavailable | EngineCrashed | None = None) -> None:
        self.problem = problem
        self.warm: asyncio.Event | None = None
        """Until it is set the engine warms up; None: it is warm."""
        self.refs: list[RunRef] = []
        self.submitted = asyncio.Event()
        self.programs: dict[str, Program] = {}
        self.learners: dict[str, str] = {}
        self._items: dict[str, asyncio.Queue[StreamItem | None]] = {}

    async def start(self) -> None:
        if self.warm is not None:
            await self.warm.wait()
        if self.problem is not None:
            raise self.problem

    async def submit(
        self, program: Program, ref: RunRef, *, learner: str = "", check: Check | None = None
    ) -> None:
        self.refs.append(ref)
        self.submitted.set()
        self.programs[ref.run_id] = program
        self.learners[ref.run_id] = learner
        self._items[ref.run_id] = asyncio.Queue()

    def put(self, run_id: str, *items: StreamItem) -> None:
        """The run reports these."""
        for item in items:
            self._items[run_id].put_nowait(item)

    def crash(self, run_id: str) -> None:
        """The run's stream breaks."""
        self._items[run_id].put_nowait(None)

    async def stream(self, ref: RunRef) -> AsyncIterator[StreamItem]:
        while True:
            item = await self._items[ref.run_id].get()
            if item is None:
                raise EngineCrashed("the supervisor died")
            yield item

    async def cancel(self, ref: RunRef) -> None:
        if ref.run_id in self._items:
            self.put(ref.run_id, outcome("cancelled"))

    async def capacity(self) -> Capacity:
        return Capacity(slots=1, num_running=0, num_queued=0, max_ranks=8)

    async def health(self) -> Health:
        return Health(is_ready=self.problem is None, tier="walled")

    async def close(self) -> None:
        return None


def started(world_size: int = 2, simulated_ranks: int | None = None) -> Started:
    return Started(
        rank=-1,
        seq=0,
        at_ns=0,
        world_size=world_size,
        device="cpu",
        tier="walled",
        simulated_ranks=simulated_ranks,
    )


def output(text: str, *, rank: int = 0, seq: int = 0) -> Output:
    return Output(rank=rank, seq=seq, at_ns=1000 * (seq + 1), stream="stdout", text=text)


def outcome(status: Status = "ok") -> Outcome:
    return Outcome(
        rank=-1,
        seq=1,
        at_ns=9_000_000,
        status=status,
        ranks=(),
        diagnosis=(),
        elapsed_s=0.009,
        dropped_events=0,
    )
