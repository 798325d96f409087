"""Whose run is next: learners take turns, and each learner's runs keep their order.

Owns the policy only: no clock, no slots, no tasks. May import the standard library only.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Run = TypeVar("Run")


class FairQueue(Generic[Run]):
    """Runs that wait, in rounds: each learner who waits gets one run per round.

    A learner joins at the end of the round that goes on and is served at most once before all who
    waited already. So nobody waits for two runs of somebody else, however many those have brought.
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[object, deque[Run]] = OrderedDict()
        """Learners in the order of their turns, each with what they wait for; none is empty."""

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    @property
    def num_learners(self) -> int:
        """Learners who wait; a run without a learner counts as one."""
        return len(self._turns)

    def __contains__(self, run: Run) -> bool:
        return any(run in waiting for waiting in self._turns.values())

    def __iter__(self) -> Iterator[Run]:
        """The runs in the order in which they will be taken if nothing more is added."""
        rounds = [iter(waiting) for waiting in self._turns.values()]
        while rounds:
            still: list[Iterator[Run]] = []
            for waiting in rounds:
                for run in waiting:
                    yield run
                    still.append(waiting)
                    break
            rounds = still

    def add(self, run: Run, learner: str = "") -> None:
        """Let a run wait behind the learner's others; without a learner it counts as its own."""
        key: object = learner or object()
        self._turns.setdefault(key, deque()).append(run)

    def take(self, can_start: Callable[[Run], bool] = lambda _: True) -> Run | None:
        """The first run that can start; it no longer waits, and its learner's turn is over.

        `can_start` is asked about each run in order, until it says yes.
        """
        chosen = next((run for run in self if can_start(run)), None)
        if chosen is None:
            return None
        learner = self._learner_of(chosen)
        self._drop(chosen, learner)
        if learner in self._turns:
            self._turns.move_to_end(learner)
        return chosen

    def remove(self, run: Run) -> None:
        """Let go of a run that waits; its learner keeps their turn. Raises: ValueError."""
        self._drop(run, self._learner_of(run))

    def _learner_of(self, run: Run) -> object:
        for learner, waiting in self._turns.items():
            if run in waiting:
                return learner
        raise ValueError("the run does not wait")

    def _drop(self, run: Run, learner: object) -> None:
        waiting = self._turns[learner]
        waiting.remove(run)
        if not waiting:
            del self._turns[learner]
