"""The facts of a run: what its stream carries, and how it ended.

May import the standard library only. Events are what leaves the engine (DESIGN: the contract);
what a rank itself writes is in `engine.reports`. Shape legend: [C] channels.
"""

from dataclasses import dataclass
from typing import Literal

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

Stream = Literal["stdout", "stderr"]
Scope = Literal["local", "global"]
StatisticName = Literal["mean", "var", "count", "running_mean", "running_var"]
Status = Literal[
    "ok",
    "cancelled",
    "engine_failure",
    "sandbox_violation",
    "timeout",
    "out_of_memory",
    "output_limit",
    "deadlock",
    "error",
]
LimitName = Literal["wall", "cpu", "memory", "scratch", "output", "trace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of a traceback or stack that lies in the learner's program."""

    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The exception that ended a rank. Columns count Unicode characters from 0; lines from 1."""

    type: str
    message: str
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    frames: tuple[Frame, ...]
    """Learner frames, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The ranks have the program; at_ns counts from here."""

    kind: Literal["started"] = "started"
    rank: int
    seq: int
    at_ns: int
    world_size: int
    device: Literal["cpu", "cuda"]
    tier: str
    simulated_ranks: int | None = None
    """Ranks that the one process stands for; None: the ranks are real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Text that a rank wrote."""

    kind: Literal["output"] = "output"
    rank: int
    seq: int
    at_ns: int
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One call of a collective on one rank; duration_ns is None if it never ended."""

    kind: Literal["collective"] = "collective"
    rank: int
    seq: int
    at_ns: int
    op: str
    group: str
    group_ranks: tuple[int, ...]
    """Global ranks of the group's members; of a group of more than 64 the first 64."""
    group_seq: int
    group_size: int
    input_bytes: int
    output_bytes: int
    dtype: str | None
    duration_ns: int | None
    phase: Phase | None
    module: str | None
    line: int | None
    peer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A per-channel statistic [C] of one batch-norm layer on one rank."""

    kind: Literal["statistic"] = "statistic"
    rank: int
    seq: int
    at_ns: int
    module: str
    name: StatisticName
    scope: Scope
    values: tuple[float, ...]
    phase: Phase | None
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(MemoryFacts):
    """What one rank holds at a boundary of a phase or module."""

    kind: Literal["memory"] = "memory"
    rank: int
    seq: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak(PeakFacts):
    """What one rank held when it held most; the last one of a rank counts."""

    kind: Literal["peak"] = "peak"
    rank: int
    seq: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation(AllocationFacts):
    """One change of one storage of one rank; only at the detailed level."""

    kind: Literal["allocation"] = "allocation"
    rank: int
    seq: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(ObservationFacts):
    """Something that happened in one rank and that a diagnosis may rest on."""

    kind: Literal["observation"] = "observation"
    rank: int
    seq: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the engine adapted or cut, in English; the page renders code + args.

    rank is -1 when it concerns the whole run.
    """

    kind: Literal["note"] = "note"
    rank: int
    seq: int
    at_ns: int
    code: str
    message: str
    args: Args
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the learner got wrong, where and why, in English; the page renders code + args."""

    code: str
    message: str
    line: int | None
    rank: int | None
    args: Args


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """How one rank ended; exit is negative for a signal, None when it was stopped with the run."""

    rank: int
    exit: int | None
    cpu_s: float
    peak_bytes: int
    stack: tuple[Frame, ...] = ()
    """Learner frames at the moment the run was stopped, innermost first."""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the hidden check says of a graded run; comes just before the outcome."""

    kind: Literal["verdict"] = "verdict"
    rank: int
    seq: int
    at_ns: int
    is_passed: bool
    results: tuple[CheckResult, ...]
    problem: CheckProblem | None = None
    """Why the check itself broke; then it is no pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the run ended: always the last event."""

    kind: Literal["outcome"] = "outcome"
    rank: int
    seq: int
    at_ns: int
    status: Status
    ranks: tuple[RankEnd, ...]
    diagnosis: tuple[Diagnosis, ...]
    elapsed_s: float
    dropped_events: int
    first_failed_rank: int | None = None
    cpu_s: float = 0.0
    """CPU time of the whole run: ranks, store, init and supervisor, parking included."""
    limit: LimitName | None = None
    """The limit at which the run was stopped."""


Event = (
    Started
    | Output
    | Collective
    | Statistic
    | Memory
    | Peak
    | Allocation
    | Observation
    | Note
    | Verdict
    | Outcome
)
