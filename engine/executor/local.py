"""The executor on this machine: learners take turns for the slots of a warm parent.

May import the seam and what is beside it, diagnosis and the leaves.
"""

import asyncio
import dataclasses
import logging
import os
from collections.abc import AsyncIterator, Callable

from engine.devices import Gpus, find_gpus
from engine.diagnosis import diagnose
from engine.errors import EngineCrashed, SandboxUnavailable, WireError
from engine.events import Diagnosis, Outcome
from engine.executor import Capacity, Health, RunRef, StreamItem
from engine.executor.attempts import follow, may_go_again, unless_cancelled
from engine.executor.checks import judged
from engine.executor.gpus import GpuPool, GpuSlots
from engine.executor.queue import FairQueue
from engine.executor.runs import SubmittedRun, bare_outcome, refuse_if_too_weak, submitted
from engine.executor.slots import Slot
from engine.executor.systems import refuse_elsewhere
from engine.executor.warm import Renewal, WarmParent
from engine.program import MAX_RANKS, Check, Program
from engine.sandbox.choice import SandboxChoice

_log = logging.getLogger(__name__)
_MAX_ATTEMPTS = 3
"""How often a run is begun whose ranks die of our fault before the program begins."""
_CLOSE_LIMIT_S = 5.0


class LocalExecutor:
    """Runs at most `slots` programs at once; learners who wait take turns.

    gpus is what runs may use; None: what this machine has, found out at the start.
    """

    def __init__(
        self,
        *,
        slots: int,
        num_parked: int,
        sandbox: SandboxChoice | None = None,
        gpus: Gpus | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        self._num_slots = slots
        self._sandbox = sandbox or SandboxChoice()
        self._warm = WarmParent(sandbox=self._sandbox, num_parked=num_parked, renewal=renewal)
        self._runs: dict[RunRef, SubmittedRun] = {}
        self._waiting: FairQueue[SubmittedRun] = FairQueue()
        self._running: set[asyncio.Task[None]] = set()
        self._takes: set[asyncio.Task[Slot]] = set()
        """Slots that are on their way, also to runs that were cancelled meanwhile."""
        self._is_closing = False
        self._gpus = gpus or Gpus()
        self._finds_gpus = gpus is None
        self._free_gpus = GpuPool(self._gpus.numbers)
        self._gpu_slots = GpuSlots(sandbox=self._sandbox)

    # -------------------------------------------------------------- the seam
    async def start(self) -> None:
        """Warm up. Raises: SandboxUnavailable, EngineCrashed."""
        refuse_elsewhere()
        hello = await self._warm.start()
        if self._finds_gpus:
            numbers = find_gpus(os.environ)
            self._gpus = Gpus(numbers=numbers, is_cuda_built=hello.is_cuda_built)
            self._free_gpus = GpuPool(numbers)
            self._finds_gpus = False

    async def submit(
        self, program: Program, ref: RunRef, *, learner: str = "", check: Check | None = None
    ) -> None:
        """Queue the program; idempotent on ref. Raises: ProgramRefused, SandboxUnavailable."""
        if ref in self._runs:
            return
        if program.evidence_bytes is not None:
            raise ValueError("a check judges a run: it is no program to be submitted")
        run = submitted(program, ref, self._gpus, learner)
        run.check = check
        self._refuse_if_open()
        refuse_if_too_weak(program, self._warm.hello)
        self._runs[ref] = run
        self._waiting.add(run, learner)
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
        if run is None or run.has_ended or run.is_cancelled:
            return
        run.cancel()
        if run in self._waiting:
            self._waiting.remove(run)
            self._end(run, bare_outcome(run, "cancelled"))
            self._tell_positions()

    async def wait_parked(self) -> None:
        """Return once as many slots are parked as should be; for measurements."""
        await self._warm.wait_parked()

    async def capacity(self) -> Capacity:
        return Capacity(
            slots=self._num_slots,
            num_running=len(self._running),
            num_queued=len(self._waiting),
            max_ranks=MAX_RANKS,
            num_learners_waiting=self._waiting.num_learners,
        )

    async def health(self) -> Health:
        hello, failure = self._warm.hello, self._warm.failure
        if hello is None:
            return Health(is_ready=False, tier="open", reason=failure or "still warming up")
        is_open = hello.tier == "open" and not self._sandbox.allow_open
        return Health(
            is_ready=not is_open and failure is None,
            tier=hello.tier,
            reason=failure or (hello.reason if is_open else None),
            remedy=hello.remedy if is_open else None,
            num_restarts=self._warm.num_renewed,
        )

    async def close(self) -> None:
        """Stop all runs and the warm parent."""
        self._is_closing = True
        for run in list(self._runs.values()):
            await self.cancel(run.ref)
        if self._running:
            await asyncio.wait(self._running, timeout=_CLOSE_LIMIT_S)
        for task in (*self._running, *self._takes):
            task.cancel()
        await asyncio.gather(*self._running, *self._takes, return_exceptions=True)
        await self._warm.close()
        await self._gpu_slots.close()

    def _refuse_if_open(self) -> None:
        hello = self._warm.hello
        if hello and hello.tier == "open" and not self._sandbox.allow_open:
            raise SandboxUnavailable(hello.reason or "", hello.remedy or "")

    # -------------------------------------------------------------- the queue
    def _dispatch(self) -> None:
        """Start runs while there are slots, and tell the others where they stand."""
        while len(self._running) < self._num_slots and not self._is_closing:
            run = self._waiting.take(self._starters())
            if run is None:
                break
            if run.runs_on != "cpu":
                run.gpus = self._free_gpus.take(run.program.world_size)
            task = asyncio.create_task(self._carry_out(run), name=f"run {run.ref.run_id}")
            self._running.add(task)
            task.add_done_callback(self._after_run)
        self._tell_positions()

    def _starters(self) -> Callable[[SubmittedRun], bool]:
        """Which of the waiting can start, asked in turn.

        Runs on GPUs wait for free ones in turn, and let those on CPU go ahead.
        """
        is_held_up = False

        def can_start(run: SubmittedRun) -> bool:
            nonlocal is_held_up
            if run.runs_on == "cpu":
                return True
            is_held_up = is_held_up or not self._free_gpus.has(run.program.world_size)
            return not is_held_up

        return can_start

    def _tell_positions(self) -> None:
        for position, run in enumerate(self._waiting):
            run.queue(position)

    def _after_run(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not self._is_closing:
            self._dispatch()
            self._warm.refill()

    # -------------------------------------------------------------- one run
    async def _carry_out(self, run: SubmittedRun) -> None:
        """One run from its slot to its outcome; whatever happens, an outcome is the last item."""
        outcome = bare_outcome(run, "engine_failure")
        try:
            outcome = await self._attempts(run)
            if run.check is not None:
                outcome = await judged(run, run.check, outcome, self._attempts)
        except asyncio.CancelledError:
            outcome = bare_outcome(run, "cancelled")
        finally:
            self._free_gpus.give_back(run.gpus)
            found: tuple[Diagnosis, ...] = ()
            try:
                # Rules parse hostile source and read the whole trace: not on the event loop.
                found = await asyncio.to_thread(diagnose, run.program, outcome, run.trace)
            finally:  # a rule that breaks must not leave the learner waiting
                self._end(run, dataclasses.replace(outcome, diagnosis=found))

    async def _attempts(self, run: SubmittedRun) -> Outcome:
        """Run the program, again if an attempt fails by our fault before it has begun."""
        for _ in range(_MAX_ATTEMPTS):
            outcome = await self._attempt(run)
            if not may_go_again(run, outcome):
                break
            run.start_over()
        return outcome

    async def _attempt(self, run: SubmittedRun) -> Outcome:
        """Run the program in a slot of its own; an outcome whatever becomes of the slot."""
        try:
            run.slot = await self._slot_for(run)
            if run.slot is not None:
                return await follow(run, run.slot)
        except (EngineCrashed, SandboxUnavailable, WireError, TimeoutError, OSError) as error:
            _log.error("run %s: %s", run.ref.run_id, error)
        finally:
            if run.slot is not None:
                run.slot.close()
                run.slot = None
        run.start_over()
        return bare_outcome(run, "cancelled" if run.is_cancelled else "engine_failure")

    async def _slot_for(self, run: SubmittedRun) -> Slot | None:
        """A slot, or None when the run is cancelled first. Raises: EngineError."""
        take = self._gpu_slots.take(run.gpus) if run.gpus else self._warm.take()
        taking = asyncio.create_task(take)
        self._takes.add(taking)
        taking.add_done_callback(self._takes.discard)
        return await unless_cancelled(run, taking)

    def _end(self, run: SubmittedRun, outcome: Outcome) -> None:
        run.has_ended = True
        run.put(outcome)
