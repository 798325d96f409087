"""The executor on this machine: a queue in front of the zygote's slots.

May import the seam and what is beside it, wire, diagnosis and the leaves.
"""

import asyncio
import dataclasses
import logging
import os
from collections import deque
from collections.abc import AsyncIterator

from engine.devices import Gpus, find_gpus
from engine.diagnosis import diagnose
from engine.errors import EngineCrashed, SandboxUnavailable, WireError
from engine.events import Event, Outcome
from engine.executor import Capacity, Health, Queued, RunRef, StreamItem
from engine.executor.gpus import GpuPool, GpuSlots
from engine.executor.runs import SubmittedRun, bare_outcome, submitted
from engine.executor.slots import Hello, Slot, Zygote
from engine.program import MAX_RANKS, Check, Program
from engine.sandbox.choice import SandboxChoice
from engine.wire import decode, encode_program

_log = logging.getLogger(__name__)
_SLACK_S = 15.0
"""How much longer than its wall limit a supervisor may take before it counts as lost."""
_NUM_PARKED_RANKS = 4
_MAX_RESTARTS_IN_A_ROW = 3


class LocalExecutor:
    """Runs at most `slots` programs at once, first come first served.

    gpus is what runs may use; None: what this machine has, found out at the start.
    """

    def __init__(
        self,
        *,
        slots: int,
        num_parked: int,
        sandbox: SandboxChoice | None = None,
        gpus: Gpus | None = None,
    ) -> None:
        self._num_slots = slots
        self._num_parked = num_parked
        self._sandbox = sandbox or SandboxChoice()
        self._zygote = self._make_zygote()
        self._hello: Hello | None = None
        self._failure: str | None = None
        self._runs: dict[RunRef, SubmittedRun] = {}
        self._waiting: deque[SubmittedRun] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._num_restarts = 0
        self._zygote_lock = asyncio.Lock()
        self._gpus = gpus or Gpus()
        self._finds_gpus = gpus is None
        self._free_gpus = GpuPool(self._gpus.numbers)
        self._gpu_slots = GpuSlots(sandbox=self._sandbox)

    def _make_zygote(self) -> Zygote:
        return Zygote(num_parked_ranks=_NUM_PARKED_RANKS, sandbox=self._sandbox)

    # -------------------------------------------------------------- the seam
    async def start(self) -> None:
        """Warm up. Raises: SandboxUnavailable, EngineCrashed."""
        async with self._zygote_lock:
            hello = await self._start_zygote()
        if self._finds_gpus:
            numbers = find_gpus(os.environ)
            self._gpus = Gpus(numbers=numbers, is_cuda_built=hello.is_cuda_built)
            self._free_gpus = GpuPool(numbers)

    async def submit(
        self, program: Program, ref: RunRef, *, learner: str = "", check: Check | None = None
    ) -> None:
        """Queue the program; idempotent on ref. Raises: DeviceUnavailable, SandboxUnavailable."""
        if ref in self._runs:
            return
        run = submitted(program, ref, self._gpus)
        self._refuse_if_open()
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
            self._end(run, bare_outcome(run, "cancelled"))
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
        is_open = hello.tier == "open" and not self._sandbox.allow_open
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
        await self._gpu_slots.close()

    # -------------------------------------------------------------- the zygote
    def _refuse_if_open(self) -> None:
        hello = self._hello
        if hello and hello.tier == "open" and not self._sandbox.allow_open:
            raise SandboxUnavailable(hello.reason or "", hello.remedy or "")

    async def _start_zygote(self) -> Hello:
        try:
            hello = self._hello = await self._zygote.start()
            self._refuse_if_open()
            for _ in range(self._num_parked):
                await self._zygote.park()
        except EngineCrashed as error:
            self._failure = str(error)
            raise
        self._failure = None
        return hello

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
        while len(self._running) < self._num_slots and not self._is_closing:
            run = self._next_run()
            if run is None:
                break
            self._waiting.remove(run)
            task = asyncio.create_task(self._carry_out(run), name=f"run {run.ref.run_id}")
            self._running.add(task)
            task.add_done_callback(self._after_run)
        self._tell_positions()

    def _next_run(self) -> SubmittedRun | None:
        """The first that can start, holding its GPUs.

        Runs on GPUs wait for free ones in turn, and let those on CPU go ahead.
        """
        for run in self._waiting:
            if run.runs_on == "cpu":
                return run
            if self._free_gpus.has(run.program.world_size):
                run.gpus = self._free_gpus.take(run.program.world_size)
                return run
            break
        return next((run for run in self._waiting if run.runs_on == "cpu"), None)

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

    async def _carry_out(self, run: SubmittedRun) -> None:
        """One run from its slot to its outcome; whatever happens, an outcome is the last item."""
        outcome = bare_outcome(run, "engine_failure")
        try:
            run.slot = await (self._gpu_slots.take(run.gpus) if run.gpus else self._take_slot())
            if run.is_cancelled:
                outcome = bare_outcome(run, "cancelled")
            else:
                async with asyncio.timeout(run.program.limits.wall_s + _SLACK_S):
                    outcome = await self._follow(run, run.slot)
                self._num_restarts = 0
        except (EngineCrashed, SandboxUnavailable, WireError, TimeoutError, OSError) as error:
            _log.error("run %s: %s", run.ref.run_id, error)
        except asyncio.CancelledError:
            outcome = bare_outcome(run, "cancelled")
        finally:
            if run.slot is not None:
                run.slot.writer.close()
            self._free_gpus.give_back(run.gpus)
            # Rules parse hostile source and read the whole trace: not on the event loop.
            found = await asyncio.to_thread(diagnose, run.program, outcome, run.trace)
            self._end(run, dataclasses.replace(outcome, diagnosis=found))

    async def _follow(self, run: SubmittedRun, slot: Slot) -> Outcome:
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

    def _end(self, run: SubmittedRun, outcome: Outcome) -> None:
        run.has_ended = True
        run.put(outcome)
