"""The life of the warm parents: the one that serves, its successor, deaths and recovery.

Owns when a parent is started and when it is let go. May import slots, the sandbox's choice and the
leaves. A parent is renewed after so many runs and so much time, since all of its runs share the
layout of its address space: a successor warms up beside it, so nobody waits and no run is lost.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from engine.devices import RunsOn
from engine.errors import EngineCrashed, SandboxUnavailable
from engine.executor.fortress import Fortress
from engine.executor.slots import Hello, Slot, Zygote
from engine.sandbox.choice import SandboxChoice

_log = logging.getLogger(__name__)
_NUM_PARKED_RANKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """When a warm parent that is well is replaced all the same."""

    after_runs: int = 500
    after_s: float = 6 * 3600.0


@dataclass(slots=True, kw_only=True)
class BackOff:
    """How long to wait before the next warm parent: not at all at first, then ever longer."""

    at_once: int = 3
    """Deaths in a row that are made up for without a wait."""
    max_delay_s: float = 60.0
    steady_s: float = 60.0
    """Whoever lived as long did not die of its start: what came before is forgotten."""
    num_in_a_row: int = 0

    def died(self, lived_s: float) -> float:
        """One more has died, lived_s after its start; seconds to wait."""
        self.num_in_a_row = 1 if lived_s >= self.steady_s else self.num_in_a_row + 1
        over = self.num_in_a_row - self.at_once
        return 0.0 if over <= 0 else float(min(self.max_delay_s, 2 ** min(over, 30)))


class WarmParent:
    """Slots of a warm parent that is there again whenever it is due or dead."""

    def __init__(
        self,
        *,
        sandbox: SandboxChoice,
        num_parked: int,
        runs_on: RunsOn = "cpu",
        renewal: Renewal | None = None,
        back_off: BackOff | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._num_parked = num_parked
        self._runs_on: RunsOn = runs_on
        self._fortress = Fortress(sandbox, runs_on)
        self._renewal = renewal or Renewal()
        self._back_off = back_off or BackOff()
        self._zygote: Zygote | None = None
        self._started_at_s = 0.0
        self._starting = asyncio.Lock()
        self._filling = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._living: set[Zygote] = set()
        """All that are started and not yet closed: the one that serves and those beside it."""
        self._is_due = asyncio.Event()
        self._changed = asyncio.Event()
        self.hello: Hello | None = None
        self.failure: str | None = None
        """Why there is no warm parent and none comes at once."""
        self.num_renewed = 0
        """Successors that have taken over, after a death or a renewal."""

    @property
    def pid(self) -> int | None:
        """The process of the one that serves."""
        return self._zygote.pid if self._zygote else None

    # -------------------------------------------------------------- for the executor
    async def start(self) -> Hello:
        """Warm up, unless that is done. Raises: SandboxUnavailable, EngineCrashed."""
        async with self._starting:
            if self._keeper is None:
                try:
                    self._take_over(await self._warm_up())
                except EngineCrashed as error:
                    self.failure = str(error)
                    raise
                self._keeper = asyncio.create_task(self._keep(), name="keep a warm parent")
        assert self.hello is not None, "a warm parent has said hello"
        return self.hello

    async def take(self, gpus: Sequence[int] = ()) -> Slot:
        """A slot whose ranks reach these GPUs; waits for a successor of a parent that died.

        Raises: EngineCrashed when none can be had for now.
        """
        while True:
            zygote, changed = self._zygote, self._changed
            if zygote is not None and (zygote.is_alive or (zygote.num_parked and not gpus)):
                try:
                    slot = await zygote.take(gpus)
                except EngineCrashed:
                    if zygote.is_alive:
                        raise
                    continue
                if zygote is self._zygote and zygote.num_taken >= self._renewal.after_runs:
                    self._is_due.set()
                return slot
            if self.failure is not None:
                raise EngineCrashed(self.failure)
            await changed.wait()

    def refill(self) -> None:
        """Have parked again, in the background, what runs have taken."""
        self._spawn(self._refill())

    async def wait_parked(self) -> None:
        """Return once as many slots are parked as should be."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """End all warm parents; runs that still go on end with them."""
        tasks = [*self._tasks, *([self._keeper] if self._keeper else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._keeper = None
        await asyncio.gather(*(zygote.close() for zygote in self._living))
        self._living.clear()

    # -------------------------------------------------------------- one after the other
    async def _keep(self) -> None:
        """Have a successor take over whenever the parent is due or has died."""
        while True:
            assert self._zygote is not None, "a parent has started before"
            await self._until_due(self._zygote)
            delay_s = 0.0
            if not self._zygote.is_alive:
                delay_s = self._note_death("it died", time.monotonic() - self._started_at_s)
            while True:
                await asyncio.sleep(delay_s)
                try:
                    successor = await self._warm_up()
                    break
                except (EngineCrashed, SandboxUnavailable) as error:
                    delay_s = self._note_death(str(error), 0.0)
            predecessor = self._zygote
            self._take_over(successor)
            self.num_renewed += 1
            self._spawn(self._let_go(predecessor))

    def _note_death(self, why: str, lived_s: float) -> float:
        """Seconds to wait before the next try; runs are told only when that is a while."""
        delay_s = self._back_off.died(lived_s)
        num = self._back_off.num_in_a_row
        _log.warning("no warm parent: %s (%d in a row); next in %g s", why, num, delay_s)
        is_alive = self._zygote is not None and self._zygote.is_alive
        if delay_s and not is_alive:
            self.failure = f"the warm parent failed {num} times in a row, at last: {why}"
            self._tell()
        return delay_s

    def _take_over(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._started_at_s = time.monotonic()
        self._is_due.clear()
        self.failure = None
        self._tell()

    def _tell(self) -> None:
        """Wake whoever waits for a parent."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _until_due(self, zygote: Zygote) -> None:
        """Return once the parent has served its time or its runs, or has ended."""
        waits = [asyncio.create_task(zygote.ended()), asyncio.create_task(self._is_due.wait())]
        try:
            await asyncio.wait(
                waits, timeout=self._renewal.after_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in waits:
                task.cancel()

    async def _warm_up(self) -> Zygote:
        """One more parent, warm and with its slots. Raises: SandboxUnavailable, EngineCrashed."""
        zygote = Zygote(
            num_parked_ranks=_NUM_PARKED_RANKS,
            sandbox=self._sandbox,
            runs_on=self._runs_on,
            fortress=self._fortress,
        )
        self._living.add(zygote)
        is_warm = False
        try:
            self.hello = hello = await zygote.start()
            if hello.tier == "open" and not self._sandbox.allow_open:
                raise SandboxUnavailable(hello.reason or "", hello.remedy or "")
            for _ in range(self._num_parked):
                await zygote.park()
            is_warm = True
        except OSError as error:  # no process or no descriptor is left to start one
            raise EngineCrashed(f"no warm parent can be started: {error}") from None
        finally:
            if not is_warm:
                self._spawn(self._let_go(zygote))
        return zygote

    async def _let_go(self, zygote: Zygote) -> None:
        """End a parent once its runs have ended."""
        await zygote.drain()
        self._living.discard(zygote)

    # -------------------------------------------------------------- in the background
    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refill(self) -> None:
        async with self._filling:
            try:
                while self._zygote and self._zygote.is_alive and self._lacks(self._zygote):
                    await self._zygote.park()
            except EngineCrashed as error:
                _log.warning("no slot could be parked: %s", error)

    def _lacks(self, zygote: Zygote) -> bool:
        return zygote.num_parked < self._num_parked
