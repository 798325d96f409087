"""Facts that only the diagnosis makes sense of: who stepped on what, what was saved, and so on.

May import engine.facts, reports, the tracers' position and torch. `prepare` belongs in the warm
parent, `Observations` in each rank. What is observed, and by which name, is in `names`.
"""

from collections.abc import Callable

from engine.reports import Report
from engine.tracers.observations.clipping import Clipping
from engine.tracers.observations.conversion import Conversion
from engine.tracers.observations.loading import Loading
from engine.tracers.observations.names import ObservationName
from engine.tracers.observations.optimizers import Optimizers
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.reducing import Call, Reducing, Waited
from engine.tracers.observations.replicas import Replicas
from engine.tracers.observations.saving import Saving
from engine.tracers.observations.shards import Shards
from engine.tracers.observations.summing import Summing
from engine.tracers.observations.watchpoints import Watchpoints
from engine.tracers.position import Position

__all__ = ["ObservationName", "Observations", "Watchpoints", "prepare"]


class Observations:
    """The observers of one rank."""

    def __init__(
        self, report: Callable[[Report], None], position: Position, program_filename: str
    ) -> None:
        recorder = Recorder(report, position)
        self._position = position
        self._replicas = Replicas(recorder)
        self._shards = Shards(recorder)
        self._optimizers = Optimizers(recorder, self._replicas, self._shards)
        self._conversion = Conversion(recorder)
        self._clipping = Clipping(recorder, self._shards, self._replicas, self._optimizers)
        self._saving = Saving(recorder, self._shards, self._optimizers)
        self._loading = Loading(recorder, self._optimizers)
        summing = Summing(
            recorder, self._optimizers, self._replicas, self._shards, program_filename
        )
        self._reducing = Reducing(
            recorder, self._optimizers, self._replicas, summing, program_filename
        )

    def install(self, watchpoints: Watchpoints) -> None:
        """Observe from now on; position's own hooks must be registered already."""
        self._replicas.install(watchpoints)
        self._shards.install(watchpoints)
        self._optimizers.install(watchpoints)
        self._conversion.install(watchpoints)
        self._clipping.install(watchpoints)
        self._saving.install(watchpoints)
        self._loading.install(watchpoints)
        self._replicas.on_input = self._loading.input_taken
        self._position.on_backward = self._optimizers.backward_begins
        self._optimizers.on_step = self._reducing.step_begins
        watchpoints.work_asked.before = lambda args, _: self._reducing.asked(args[0])

    def calling(self, call: Call) -> Call:
        """What is to carry out collectives, observed."""
        return self._reducing.calling(call)

    def waiting(self, waited: Waited) -> Waited:
        """What is to be told of waits, observed."""
        return self._reducing.waiting(waited)

    def finish(self) -> None:
        """Report what only the end of the program makes certain."""
        with unnoticed():
            self._optimizers.finish()
        with unnoticed():
            self._conversion.finish()
        with unnoticed():
            self._loading.finish()
        with unnoticed():
            self._reducing.finish()


def prepare() -> Watchpoints:
    """Stand at the watchpoints, in this process and all that fork from it; nobody is told yet."""
    watchpoints = Watchpoints()
    watchpoints.put_in_place()
    return watchpoints
