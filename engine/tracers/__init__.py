"""Memory by category, collectives, batch-norm statistics: what a rank holds, sends and computes.

May import engine.events, engine.reports and torch. `prepare` belongs in the warm parent (it starts
no thread); `install` belongs in each rank, before the learner's program runs.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from engine.program import Detail
from engine.reports import Report
from engine.tracers import interception as intercepting
from engine.tracers import observations as observing
from engine.tracers.collectives import CollectiveTracer
from engine.tracers.interception import Interception
from engine.tracers.memory import MemoryHooks, MemoryTracer, TracedDevice, prepare_memory
from engine.tracers.observations import Observations, Watchpoints
from engine.tracers.position import Position
from engine.tracers.statistics import StatisticTracer

__all__ = ["Prepared", "Tracers", "install", "prepare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What `prepare` has registered with torch, still silent."""

    interception: Interception
    memory: MemoryHooks
    watchpoints: Watchpoints


class Tracers:
    """The tracers of one rank."""

    def __init__(
        self,
        report: Callable[[Report], None],
        program_filename: str,
        prepared: Prepared,
        *,
        device: TracedDevice,
        detail: Detail,
    ) -> None:
        self._position = Position(program_filename)
        self._memory: MemoryTracer | None = None
        self._observations: Observations | None = None
        self._collectives: CollectiveTracer | None = None
        if detail == "off":
            return
        collectives = CollectiveTracer(report, self._position, on_gpus=device == "cuda")
        self._collectives = collectives
        statistics = StatisticTracer(report, self._position)
        self._memory = MemoryTracer(report, self._position, device=device, detail=detail)
        self._position.install(statistics.after_forward, self._memory)
        interception = prepared.interception
        self._observations = Observations(report, self._position, program_filename)
        interception.on_collective = self._observations.calling(collectives.call)
        interception.on_wait = self._observations.waiting(collectives.waited)
        interception.on_gather_stats = statistics.gathered
        self._memory.begin(prepared.memory)
        if device != "simulated":  # they compare values between ranks, and here are none
            self._observations.install(prepared.watchpoints)

    def line(self) -> int | None:
        """The learner's source line that this thread is running, None outside the program."""
        return self._position.line()

    def end(self) -> None:
        """Report what only the end of the program makes certain."""
        if self._collectives is not None:
            self._collectives.settle()
        if self._observations is not None:
            self._observations.finish()
        if self._memory is not None:
            self._memory.end()

    def remove(self, prepared: Prepared) -> None:
        """Leave what was prepared as silent as it was; hooks that torch holds are not taken out."""
        prepared.interception.on_collective = None
        prepared.interception.on_wait = None
        prepared.interception.on_gather_stats = None
        prepared.watchpoints.forget_all()
        if self._memory is not None:
            self._memory.leave(prepared.memory)


def prepare() -> Prepared:
    """Register the tracers with torch; nothing is reported before `install`."""
    # A learner can do nothing about the tracers' hooks.
    warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global")
    return Prepared(
        interception=intercepting.prepare(),
        memory=prepare_memory(),
        watchpoints=observing.prepare(),
    )


def install(
    report: Callable[[Report], None],
    program_filename: str,
    prepared: Prepared | None = None,
    *,
    device: TracedDevice = "cpu",
    detail: Detail = "summary",
) -> Tracers:
    """Trace this rank: report memory, collectives and batch-norm statistics from now on.

    report must be thread-safe: ends are reported from the backend's threads. program_filename
    is the co_filename of the learner's code. prepared is what `prepare` returned in the warm
    parent, None to prepare here.
    """
    ready = prepared or prepare()
    return Tracers(report, program_filename, ready, device=device, detail=detail)
