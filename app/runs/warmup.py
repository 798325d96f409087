"""Starting the engine beside the server, so that pages are there before the ranks' parent is."""

import asyncio
import logging
import time

from engine.errors import EngineCrashed, EngineError, SandboxUnavailable
from engine.executor import Executor

DEADLINE_S = 150.0
RETRY_S = 30.0
"""How long a machine's refusal stands before it is asked again: a fix takes an operator."""

_log = logging.getLogger(__name__)


class Warmup:
    """Begins at the server's start; whoever needs the engine waits in `ready`."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._task: asyncio.Task[None] | None = None
        self.problem: SandboxUnavailable | EngineCrashed | None = None
        """Why runs cannot start; None while warming up and when all is well."""
        self._asked_at_s = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether it is known if runs can start; a refusal stands while it is asked about again."""
        is_done = self._task is not None and self._task.done()
        return is_done or isinstance(self.problem, SandboxUnavailable)

    async def settles_within(self, limit_s: float) -> bool:
        """Whether it is known, in time, if runs can start."""
        self.begin()
        if self._task is not None and not self.is_settled:
            await asyncio.wait({self._task}, timeout=limit_s)
        return self.is_settled

    def begin(self) -> None:
        """Start the engine in the background, once; again after it failed."""
        is_refused = isinstance(self.problem, SandboxUnavailable)
        if is_refused and time.monotonic() < self._asked_at_s + RETRY_S:
            return
        if self._task is None or (self._task.done() and self.problem is not None):
            self._asked_at_s = time.monotonic()
            self._task = asyncio.create_task(self._start(), name="engine-warm-up")

    async def ready(self) -> None:
        """Wait for the engine. Raises: SandboxUnavailable, EngineCrashed."""
        self.begin()
        await self.settled()
        if self.problem is not None:
            raise self.problem.with_traceback(None)

    async def settled(self) -> None:
        """Wait until it is known whether runs can start; `problem` says."""
        if self._task is not None and not self.is_settled:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _start(self) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._executor.start()
        except (SandboxUnavailable, EngineCrashed) as error:
            self.problem = error
        except (EngineError, OSError, TimeoutError) as error:
            self.problem = EngineCrashed(f"the engine did not start: {type(error).__name__}")
        else:
            self.problem = None
            return
        _log.info("runs cannot start: %s", self.problem)
