"""What a rank writes on its trace pipe: untrusted until `engine.wire` has decoded it.

May import engine.events. The supervisor makes events of reports: rank, seq and the clock since the
run's start are given there, never read. Shape legend: [C] channels.
"""

from dataclasses import dataclass
from typing import Literal

from engine.events import Failure, Scope, StatisticName
from engine.facts import (
    AllocationFacts,
    Args,
    CheckProblem,
    CheckResult,
    MemoryFacts,
    ObservationFacts,
    PeakFacts,
    Phase,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveReport:
    """A collective (or point-to-point call) was enqueued; its end comes as an EndReport."""

    kind: Literal["collective"] = "collective"
    call: int
    """Number of the call within its rank, from 0."""
    at_ns: int
    """CLOCK_MONOTONIC of the machine."""
    op: str
    group: str
    group_ranks: tuple[int, ...]
    """Global ranks of the group's members; of a large group its first ones."""
    group_seq: int
    """Number of the call within its group on this rank, from 0."""
    input_bytes: int
    output_bytes: int
    dtype: str | None
    phase: Phase | None
    module: str | None
    line: int | None
    peer: int | None = None
    """Global rank at the other end of a point-to-point call."""
    group_size: int | None = None
    """Number of the group's members; None: group_ranks has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """The collective `call` of this rank ended."""

    kind: Literal["end"] = "end"
    call: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticReport:
    """A per-channel statistic [C] of one batch-norm layer (count has one value)."""

    kind: Literal["statistic"] = "statistic"
    at_ns: int
    module: str
    name: StatisticName
    scope: Scope
    values: tuple[float, ...]
    phase: Phase | None
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport(MemoryFacts):
    """What the rank holds at a boundary of a phase or module."""

    kind: Literal["memory"] = "memory"
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakReport(PeakFacts):
    """What the rank held when it held most so far; a later one replaces it."""

    kind: Literal["peak"] = "peak"
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationReport(AllocationFacts):
    """One storage was allocated, resized, classified anew or freed (detailed level)."""

    kind: Literal["allocation"] = "allocation"
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationReport(ObservationFacts):
    """Something that a rule of the diagnosis wants to know and no other report tells."""

    kind: Literal["observation"] = "observation"
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteReport:
    """The engine adapted something so that stock PyTorch runs on CPU ranks."""

    kind: Literal["note"] = "note"
    at_ns: int
    code: str
    args: Args
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """The program of this rank raised."""

    kind: Literal["failure"] = "failure"
    at_ns: int
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunReport:
    """The engine's part of starting this rank is done; the program comes next."""

    kind: Literal["begun"] = "begun"
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedReport:
    """The program of this rank reached its end (or sys.exit); only teardown is left."""

    kind: Literal["finished"] = "finished"
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReport:
    """What a check found; taken only from a process that runs a check, never from a rank."""

    kind: Literal["verdict"] = "verdict"
    at_ns: int
    is_passed: bool
    results: tuple[CheckResult, ...]
    problem: CheckProblem | None = None


Report = (
    BegunReport
    | CollectiveReport
    | EndReport
    | StatisticReport
    | MemoryReport
    | PeakReport
    | AllocationReport
    | ObservationReport
    | NoteReport
    | FailureReport
    | FinishedReport
    | VerdictReport
)
