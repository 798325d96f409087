"""What is asked of the run service, and why it refuses."""

from dataclasses import dataclass

from engine.program import Program


class RunNotFound(Exception):
    """There is no such run, or it belongs to somebody else."""


class TooManyRuns(Exception):
    """The learner already has as many runs going as one may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} runs are still going")
        self.limit = limit


class QueueFull(Exception):
    """As many runs wait as may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose run it is; without a learner whoever knows the run's id may see it."""

    learner_id: str | None
    key: str
    """What the limit on simultaneous runs counts by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A program, and the cell that it comes from (None through the API)."""

    program: Program
    lesson_id: str | None = None
    cell_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """Limits that the operator sets."""

    runs_per_learner: int = 3
    queue_wait_s: float = 600.0
    max_waiting: int = 200
    """Runs that may wait for a slot, of all learners together."""
