"""Memory by category, collectives, batch-norm statistics: what a rank holds, sends and computes.

May import engine.events and torch. `prepare` belongs in the warm parent (it starts no thread);
`install` belongs in each rank, before the learner's program runs. This version traces
collectives and statistics.
"""

from collections.abc import Callable

from engine.reports import Report
from engine.tracers.collectives import CollectiveTracer
from engine.tracers.interception import Interception, prepare
from engine.tracers.position import Position
from engine.tracers.statistics import StatisticTracer

__all__ = ["Interception", "Tracers", "install", "prepare"]


class Tracers:
    """The tracers of one rank."""

    def __init__(
        self, report: Callable[[Report], None], program_filename: str, interception: Interception
    ) -> None:
        self._position = Position(program_filename)
        self._collectives = CollectiveTracer(report, self._position)
        self._statistics = StatisticTracer(report, self._position)
        self._position.install(self._statistics.after_forward)
        interception.on_collective = self._collectives.call
        interception.on_wait = self._collectives.waited
        interception.on_gather_stats = self._statistics.gathered

    def line(self) -> int | None:
        """The learner's source line that this thread is running, None outside the program."""
        return self._position.line()


def install(
    report: Callable[[Report], None],
    program_filename: str,
    interception: Interception | None = None,
) -> Tracers:
    """Trace this rank: report each collective and each batch-norm statistic from now on.

    report must be thread-safe: ends are reported from the backend's threads. program_filename
    is the co_filename of the learner's code. interception is what `prepare` returned in the
    warm parent, None to prepare here.
    """
    return Tracers(report, program_filename, interception or prepare())
