"""The executor on this machine: a queue in front of the zygote's slots.

May import the seam, slots, wire, trace, diagnosis and the leaves.
"""

import asyncio
import dataclasses
import logging
from collections import deque
from collections.abc import AsyncIterator

from engine.diagnosis import diagnose
from engine.errors import DeviceUnavailable, EngineCrashed, SandboxUnavailable, WireError
from engine.events import Event, Outcome, RankEnd
from engine.executor import Capacity, Health, Queued, RunRef, StreamItem
from engine.executor.slots import Hello, Slot, Zygote
from engine.program import MAX_RANKS, Program
from engine.trace import Trace
from engine.wire import decode, encode_program

_log = logging.getLogger(__name__)
_SLACK_S = 15.0
"""How much longer than its wall limit a supervisor may take before it counts as lost."""
_NUM_PARKED_RANKS = 4
_MAX_RESTARTS_IN_A_ROW = 3


class _Run:
    """One submitted run and its items, in order."""

    def __init__(self, program: Program, ref: RunRef) -> None:
        self.program = program
        self.ref = ref
        self.items: asyncio.Queue[StreamItem] = asyncio.Queue()
        self.trace = Trace()
        self.is_cancelled = False
        self.slot: Slot | None = None
        self.has_ended = False
        self.num_run_events = 0
        """Events of the run itself so far: the next one's sequence number."""

    def put(self, item: StreamItem) -> None:
        self.items.put_nowait(item)
        if not isinstance(item, Queued):
            self.trace.add(item)
            self.num_run_events += item.rank < 0


class LocalExecutor:
    """Runs at most `slots` programs at once, first come first served."""

    def __init__(self, *, slots: int, num_parked: int, allow_unsandboxed: bool) -> None:
        self._num_slots = slots
        self._num_parked = num_parked
        self._allow_unsandboxed = allow_unsandboxed
        self._zygote = self._make_zygote()
        self._hello: Hello | None = None
        self._failure: str | None = None
        self._runs: dict[RunRef, _Run] = {}
        self._waiting: deque[_Run] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._num_restarts = 0
        self._zygote_lock = asyncio.Lock()

    def _make_zygote(self) -> Zygote:
        return Zygote(num_parked_ranks=_NUM_PARKED_RANKS, allow_unsandboxed=self._allow_unsandboxed)

    # -------------------------------------------------------------- the seam
    async def start(self) -> None:
        """Warm up. Raises: SandboxUnavailable, EngineCrashed."""
        async with self._zygote_lock:
            await self._start_zygote()

    async def submit(self, program: Program, ref: RunRef) -> None:
        """Queue the program; idempotent on ref. Raises: DeviceUnavailable, SandboxUnavailable."""
        if ref in self._runs:
            return
        if program.device == "cuda":
            raise DeviceUnavailable(
                "device cuda needs one GPU per rank, and this machine offers none to runs"
            )
        self._refuse_if_open()
        run = _Run(program, ref)
        self._runs[ref] = run
        self._waiting.append(run)
        self._dispatch()

    async def stream(self, ref: RunRef) -> AsyncIterator[StreamItem]:
        """Yield queue positions, then events; the last item is the Outcome."""
        run = self._runs[ref]
        while True:
            item = await run.items.get()
            yield item
            if isinstance(item, Outcome):
                self._runs.pop(ref, None)
                return

    async def cancel(self, ref: RunRef) -> None:
        """Stop the run in whatever state it is."""
        run = self._runs.get(ref)
        if run is None or run.has_ended:
            return
        run.is_cancelled = True
        if run in self._waiting:
            self._waiting.remove(run)
            self._end(run, _bare_outcome(run, "cancelled"))
            self._tell_positions()
        elif run.slot is not None:
            run.slot.writer.write(b"c")

    async def wait_parked(self) -> None:
        """Return once as many slots are parked as should be; for measurements."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def capacity(self) -> Capacity:
        return Capacity(
            slots=self._num_slots,
            num_running=len(self._running),
            num_queued=len(self._waiting),
            max_ranks=MAX_RANKS,
        )

    async def health(self) -> Health:
        hello = self._hello
        if hello is None:
            return Health(is_ready=False, tier="open", reason=self._failure or "still warming up")
        is_open = hello.tier == "open" and not self._allow_unsandboxed
        reason = self._failure or (hello.reason if is_open else None)
        return Health(
            is_ready=not is_open and self._failure is None,
            tier=hello.tier,
            reason=reason,
            remedy=hello.remedy if is_open else None,
        )

    async def close(self) -> None:
        """Stop all runs and the warm parent."""
        self._is_closing = True
        for run in list(self._runs.values()):
            await self.cancel(run.ref)
        if self._running:
            await asyncio.wait(self._running, timeout=5)
        for task in [*self._running, *self._tasks]:
            task.cancel()
        await asyncio.gather(*self._running, *self._tasks, return_exceptions=True)
        await self._zygote.close()

    # -------------------------------------------------------------- the zygote
    def _refuse_if_open(self) -> None:
        hello = self._hello
        if hello and hello.tier == "open" and not self._allow_unsandboxed:
            raise SandboxUnavailable(hello.reason or "", hello.remedy or "")

    async def _start_zygote(self) -> None:
        try:
            self._hello = await self._zygote.start()
            self._refuse_if_open()
            for _ in range(self._num_parked):
                await self._zygote.park()
        except EngineCrashed as error:
            self._failure = str(error)
            raise
        self._failure = None

    async def _take_slot(self) -> Slot:
        """A parked slot, after a restart of the zygote if it is gone. Raises: EngineCrashed."""
        async with self._zygote_lock:
            if not self._zygote.is_alive:
                if self._num_restarts >= _MAX_RESTARTS_IN_A_ROW:
                    raise EngineCrashed("the warm parent keeps dying")
                self._num_restarts += 1
                _log.warning("the zygote is gone; starting another")
                await self._zygote.close()
                self._zygote = self._make_zygote()
                await self._start_zygote()
            return await self._zygote.take()

    async def _refill(self) -> None:
        """Park again what the last run took."""
        async with self._zygote_lock:
            try:
                while self._zygote.num_parked < self._num_parked and not self._is_closing:
                    await self._zygote.park()
            except EngineCrashed as error:
                _log.warning("no slot could be parked: %s", error)

    # -------------------------------------------------------------- the queue
    def _dispatch(self) -> None:
        while self._waiting and len(self._running) < self._num_slots and not self._is_closing:
            run = self._waiting.popleft()
            task = asyncio.create_task(self._carry_out(run), name=f"run {run.ref.run_id}")
            self._running.add(task)
            task.add_done_callback(self._after_run)
        self._tell_positions()

    def _tell_positions(self) -> None:
        for position, run in enumerate(self._waiting):
            run.put(Queued(position=position))

    def _after_run(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if self._is_closing:
            return
        self._dispatch()
        refill = asyncio.create_task(self._refill())
        self._tasks.add(refill)
        refill.add_done_callback(self._tasks.discard)

    async def _carry_out(self, run: _Run) -> None:
        """One run from its slot to its outcome; whatever happens, an outcome is the last item."""
        outcome = _bare_outcome(run, "engine_failure")
        try:
            run.slot = await self._take_slot()
            if run.is_cancelled:
                outcome = _bare_outcome(run, "cancelled")
            else:
                async with asyncio.timeout(run.program.limits.wall_s + _SLACK_S):
                    outcome = await self._follow(run, run.slot)
                self._num_restarts = 0
        except (EngineCrashed, SandboxUnavailable, WireError, TimeoutError, OSError) as error:
            _log.error("run %s: %s", run.ref.run_id, error)
        except asyncio.CancelledError:
            outcome = _bare_outcome(run, "cancelled")
        finally:
            if run.slot is not None:
                run.slot.writer.close()
            # Rules parse hostile source and read the whole trace: not on the event loop.
            found = await asyncio.to_thread(diagnose, run.program, outcome, run.trace)
            self._end(run, dataclasses.replace(outcome, diagnosis=found))

    async def _follow(self, run: _Run, slot: Slot) -> Outcome:
        """Pass on a supervisor's events before the outcome. Raises: EngineCrashed."""
        slot.writer.write(encode_program(run.program))
        while line := await slot.reader.readline():
            if line.startswith(b'{"failed"'):
                raise EngineCrashed(line.decode("utf-8", "replace").strip())
            event: Event = decode(line)
            if isinstance(event, Outcome):
                return event
            run.put(event)
        raise EngineCrashed("the supervisor died")

    def _end(self, run: _Run, outcome: Outcome) -> None:
        run.has_ended = True
        run.put(outcome)


def _bare_outcome(run: _Run, status: str) -> Outcome:
    """The outcome of a run of which no supervisor could say more."""
    started = run.trace.started
    last_ns = max((e.at_ns for e in run.trace.outputs), default=0)
    return Outcome(
        rank=-1,
        seq=run.num_run_events,
        at_ns=last_ns,
        status="cancelled" if status == "cancelled" else "engine_failure",
        ranks=tuple(
            RankEnd(rank=rank, exit=None, cpu_s=0.0, peak_bytes=0)
            for rank in range(run.program.world_size if started else 0)
        ),
        diagnosis=(),
        elapsed_s=round(last_ns / 1e9, 6),
        dropped_events=0,
    )
