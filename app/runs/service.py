"""Starts runs through the seam, follows each in a task of its own, keeps what they report."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from app.runs.archive import Archive
from app.runs.live import LiveRun, Snapshot, Step, new_row
from app.runs.requests import NewRun, Owner, QueueFull, RunNotFound, RunPolicy, TooManyRuns
from app.runs.warmup import Warmup
from app.store import EventWriter, RunRow, RunStore, StoreError
from app.store.runs import run_end
from engine.errors import EngineCrashed, EngineError, ProgramRefused
from engine.events import Event, Outcome
from engine.executor import Executor, Queued, RunRef, StreamItem
from engine.program import Program

FRAMES_PER_S = 12
BEAT_S = 15.0
"""How long a follower waits before it looks again by itself."""
MAX_PAUSE_S = 2.0
SUBMIT_DEADLINE_S = 10.0
WARMUP_PATIENCE_S = 0.2
CANCEL_DEADLINE_S = 5.0
CLOSE_DEADLINE_S = 2.0
TEARDOWN_S = 15.0
"""How long past its wall limit a run may take to report its outcome."""
ITEMS_PER_TURN = 32
EVENTS_PER_BATCH = 200

_log = logging.getLogger(__name__)


class RunService:
    """All runs of the site; belongs to one event loop."""

    def __init__(
        self, executor: Executor, store: RunStore, writer: EventWriter, policy: RunPolicy
    ) -> None:
        self.warmup = Warmup(executor)
        self._executor = executor
        self._store = store
        self._writer = writer
        self._policy = policy
        self._live: dict[str, LiveRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._archive = Archive(store)
        self._closing = asyncio.Event()

    async def open(self) -> None:
        """End what a crash left unfinished, and begin to warm the engine up."""
        for row in await self._store.unfinished():
            live = await self._archive.load(row)
            outcome = live.events[-1] if live.events else None
            if not isinstance(outcome, Outcome):
                outcome = live.failure()
                await self._record(live, outcome)
            self._writer.end(run_end(row.id, outcome.status, outcome.elapsed_s))
        await self._writer.flush()
        self.warmup.begin()

    async def start(self, owner: Owner, new: NewRun) -> str:
        """Start a run; its id. An earlier run of the same cell that still goes is cancelled.

        While the engine still warms up the run waits for it, not the learner's request.

        Raises: TooManyRuns, QueueFull, EngineError, StoreError.
        """
        going = [
            run
            for run in self._live.values()
            if run.owner_key == owner.key and not run.has_ended and not run.cancel_requested
        ]
        replaced = [run for run in going if new.cell_id and run.is_of(new)]
        if len(going) - len(replaced) >= self._policy.runs_per_learner:
            raise TooManyRuns(self._policy.runs_per_learner)
        if sum(run.started_at_s is None for run in self._live.values()) >= self._policy.max_waiting:
            raise QueueFull
        is_simulated = new.program.simulated_ranks is not None
        live = LiveRun(new_row(owner, new), owner.key, is_simulated=is_simulated)
        self._live[live.row.id] = live  # before any await: two requests at once count each other
        try:
            for run in replaced:
                await self._cancel(run)
            is_late = not await self.warmup.settles_within(WARMUP_PATIENCE_S)
            if not is_late:
                await self._hand_over(live, new.program)
            await self._insert(live)
        except BaseException:
            del self._live[live.row.id]
            raise
        late = new.program if is_late else None
        task = asyncio.create_task(self._drive(live, late), name=f"run-{live.row.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return live.row.id

    async def get(self, run_id: str, learner_id: str | None) -> Snapshot:
        """The run as it stands. Raises: RunNotFound."""
        return (await self._find(run_id, learner_id)).snapshot()

    async def last_of_cells(self, learner_id: str, lesson_id: str) -> dict[str, Snapshot]:
        """The learner's newest run of each cell of a lesson."""
        rows = await self._store.last_of_cells(learner_id, lesson_id)
        return {cell: (await self._of_row(row)).snapshot() for cell, row in rows.items()}

    async def cancel(self, run_id: str, learner_id: str | None) -> None:
        """Ask the engine to stop the run. Raises: RunNotFound."""
        live = await self._find(run_id, learner_id)
        if not live.has_ended:
            await self._cancel(live)

    async def follow(
        self, run_id: str, learner_id: str | None, after: int = 0
    ) -> AsyncIterator[Step]:
        """The run now, again whenever it has changed, and at its end. Raises: RunNotFound.

        `after` counts the events that the follower has. At most 12 steps a second, and seldom
        enough that a slow follower is busy a fifth of the time.
        """
        return self._steps(await self._find(run_id, learner_id), after)

    async def lines(
        self, run_id: str, learner_id: str | None, after: int
    ) -> AsyncIterator[tuple[int, str]]:
        """(position, encoded event) from position `after` on, to the outcome. Raises: RunNotFound.

        A follower may have been further than the run is: a crash costs the last moment's events.
        """
        return self._lines(await self._find(run_id, learner_id), after)

    def close_streams(self) -> None:
        """Let every follower come to its end, so that the server can stop."""
        self._closing.set()
        for live in self._live.values():
            live.touch()

    async def close(self) -> None:
        """Stop all runs and note their ends."""
        self.close_streams()
        await self.warmup.close()
        going = [live for live in self._live.values() if not live.has_ended]
        await asyncio.gather(*(self._stop(live, CLOSE_DEADLINE_S) for live in going))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_DEADLINE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -------------------------------------------------------------- one run
    async def _hand_over(self, live: LiveRun, program: Program) -> None:
        """Give the program to the engine. Raises: EngineError."""
        await self.warmup.ready()
        try:
            async with asyncio.timeout(SUBMIT_DEADLINE_S):
                ref = RunRef(run_id=live.row.id)
                await self._executor.submit(program, ref, learner=live.owner_key)
        except TimeoutError:
            raise EngineCrashed("the engine took no run in time") from None
        if live.cancel_requested:  # while it was on its way to the engine
            await self._stop(live, CANCEL_DEADLINE_S)

    async def _insert(self, live: LiveRun) -> None:
        try:
            await self._store.insert(live.row)
        except BaseException:
            await self._stop(live, CANCEL_DEADLINE_S)
            raise
        if live.cancel_requested:
            await self._stop(live, CANCEL_DEADLINE_S)

    async def _drive(self, live: LiveRun, late: Program | None) -> None:
        """Follow the run to its outcome, whatever happens to the engine.

        `late` is its program when the engine has not got it yet.
        """
        outcome: Outcome | None = None
        try:
            if late is not None:
                await self._hand_over(live, late)
            outcome = await self._consume(live)
        except ProgramRefused as error:  # it was taken before anybody knew
            outcome = live.failure(said=error)
        except (EngineError, StoreError, TimeoutError):
            _log.exception("run failed in the engine", extra={"run_id": live.row.id})
            await self._stop(live, CANCEL_DEADLINE_S)
        finally:
            was_stopped_by_us = self._closing.is_set() and not live.cancel_requested
            if outcome is None or (was_stopped_by_us and outcome.status == "cancelled"):
                outcome = live.failure()
            await self._conclude(live, outcome)

    async def _conclude(self, live: LiveRun, outcome: Outcome) -> None:
        """Write the end down, and only then show it: what was seen to end has ended for good."""
        try:
            await self._writer.append([live.next_row(outcome)])
            self._writer.end(run_end(live.row.id, outcome.status, outcome.elapsed_s))
            await self._writer.flush()
        except StoreError:
            _log.exception("the end of a run is not written", extra={"run_id": live.row.id})
        finally:
            live.add(outcome)
            self._archive.put(live)
            del self._live[live.row.id]

    async def _consume(self, live: LiveRun) -> Outcome:
        """Take items until the outcome. Raises: EngineError, StoreError, TimeoutError."""
        items: AsyncIterator[StreamItem] = aiter(self._executor.stream(RunRef(run_id=live.row.id)))
        num_items = 0
        while True:
            try:
                async with asyncio.timeout(self._patience_s(live)):
                    item = await anext(items)
            except StopAsyncIteration:
                raise EngineCrashed("the stream ended without an outcome") from None
            if isinstance(item, Outcome):
                return item
            if isinstance(item, Queued):
                live.queue(item.position)
            else:
                await self._record(live, item)
            num_items += 1
            if num_items % ITEMS_PER_TURN == 0:
                await asyncio.sleep(0)  # a full queue never suspends: let the pages have a turn

    async def _record(self, live: LiveRun, event: Event) -> None:
        row = live.next_row(event)
        live.add(event)
        await self._writer.append([row])

    def _patience_s(self, live: LiveRun) -> float:
        if live.started_at_s is None:
            return self._policy.queue_wait_s
        end_s = live.started_at_s + live.row.wall_limit_s + TEARDOWN_S
        return max(0.0, end_s - time.monotonic())

    async def _cancel(self, live: LiveRun) -> None:
        live.cancel_requested = True
        await self._stop(live, CANCEL_DEADLINE_S)

    async def _stop(self, live: LiveRun, deadline_s: float) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                await self._executor.cancel(RunRef(run_id=live.row.id))
        except (TimeoutError, EngineError):
            _log.exception("cannot stop the run", extra={"run_id": live.row.id})

    # -------------------------------------------------------------- followers
    async def _find(self, run_id: str, learner_id: str | None) -> LiveRun:
        live = self._live.get(run_id) or self._archive.get(run_id)
        if live is None:
            row = await self._store.get(run_id)
            if row is None:
                raise RunNotFound(run_id)
            live = await self._of_row(row)
        if live.row.learner_id is not None and live.row.learner_id != learner_id:
            raise RunNotFound(run_id)
        return live

    async def _of_row(self, row: RunRow) -> LiveRun:
        found = self._live.get(row.id) or self._archive.get(row.id)
        return found or await self._archive.load(row)

    async def _steps(self, live: LiveRun, after: int) -> AsyncIterator[Step]:
        num_outputs, num_collectives = live.seen(after)
        while True:
            version, begun_s = live.version, time.monotonic()
            snapshot = live.snapshot()
            yield Step(snapshot=snapshot, output_from=num_outputs, collectives_from=num_collectives)
            if snapshot.has_ended:
                return
            num_outputs = len(snapshot.trace.outputs)
            num_collectives = len(snapshot.trace.collectives)
            busy_s = time.monotonic() - begun_s
            await self._pause(min(MAX_PAUSE_S, max(1 / FRAMES_PER_S, 4 * busy_s)))
            while live.version == version and not self._closing.is_set():
                await live.changed(version, BEAT_S)
            if self._closing.is_set():
                return

    async def _pause(self, duration_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(duration_s):
                await self._closing.wait()

    async def _lines(self, live: LiveRun, after: int) -> AsyncIterator[tuple[int, str]]:
        position = max(0, after)
        while not self._closing.is_set():
            version = live.version
            if live.has_ended:
                position = min(position, len(live.events) - 1)
            for event in live.events[position : position + EVENTS_PER_BATCH]:
                position += 1
                yield position, live.encoded(event)
            if position >= len(live.events):
                if live.has_ended:
                    return
                await live.changed(version, BEAT_S)
