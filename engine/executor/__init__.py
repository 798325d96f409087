"""The seam between the site and the engine: submit, stream, cancel, capacity, health.

May import the leaves (program, events, errors); `engine.executor.local` is the implementation on
this machine. A distributed engine implements the same Protocol.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from engine.events import Event
from engine.program import Check, Program
from engine.sandbox.choice import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """Names one attempt at one run; submitting the same reference twice starts it once."""

    run_id: str
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The run waits for a slot; position counts the runs ahead of it."""

    position: int


StreamItem = Queued | Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many runs may go on at once, go on now, and wait."""

    slots: int
    num_running: int
    num_queued: int
    max_ranks: int
    num_learners_waiting: int = 0
    """Learners who have a run in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether runs can start here, in which tier, and if not, why and what to change."""

    is_ready: bool
    tier: Tier
    reason: str | None = None
    remedy: str | None = None
    num_restarts: int = 0
    """Warm parents that have taken over from another, for whatever reason."""


class Executor(Protocol):
    """Runs programs; every method is safe to call from one event loop."""

    async def start(self) -> None:
        """Warm up. Raises: SandboxUnavailable, EngineCrashed."""

    async def submit(
        self, program: Program, ref: RunRef, *, learner: str = "", check: Check | None = None
    ) -> None:
        """Queue the program; idempotent on ref. Raises: ProgramRefused, SandboxUnavailable.

        Learners take turns in the queue. A check is carried out after the run, in a process that
        ran none of the program; its Verdict comes just before the Outcome.
        """

    def stream(self, ref: RunRef) -> AsyncIterator[StreamItem]:
        """Yield queue positions, then the run's events; the last item is its Outcome.

        One consumer per run. Abandoning the iterator does not stop the run.
        """

    async def cancel(self, ref: RunRef) -> None:
        """Stop the run in whatever state it is; its stream ends with outcome `cancelled`."""

    async def capacity(self) -> Capacity: ...

    async def health(self) -> Health: ...

    async def close(self) -> None:
        """Stop all runs and the warm parent."""
