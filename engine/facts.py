"""What reports and events have in common: where in a step, and what a rank holds.

May import the standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["forward", "backward", "step"]
Category = Literal[
    "parameter", "gradient", "optimizer", "activation", "buffer", "communication", "other"
]
AllocationAction = Literal["allocate", "resize", "classify", "free"]
Arg = str | int | float | None
Args = Mapping[str, Arg]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """Bytes of tensor storage that a rank holds, by what they are for."""

    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    buffer_bytes: int
    communication_bytes: int
    other_bytes: int
    peak_bytes: int
    """Most that the rank has held at once so far, at any moment, not only at boundaries."""
    phase: Phase | None
    module: str | None
    line: int | None
    allocated_bytes: int | None = None
    """What the CUDA allocator itself counts as in use; None on CPU."""
    reserved_bytes: int | None = None
    """What the CUDA allocator has taken from the device; None on CPU."""

    @property
    def total_bytes(self) -> int:
        """All categories together."""
        return (
            self.parameter_bytes
            + self.gradient_bytes
            + self.optimizer_bytes
            + self.activation_bytes
            + self.buffer_bytes
            + self.communication_bytes
            + self.other_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Storages of one kind that were alive at a peak, together."""

    category: Category
    num_bytes: int
    num_storages: int
    shape: tuple[int, ...] | None
    """Of the first tensor seen on the storage; None when there was none."""
    dtype: str | None
    phase: Phase | None
    module: str | None
    line: int | None
    """Where they were allocated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakFacts(MemoryFacts):
    """What a rank held at its highest moment."""

    held: tuple[Holding, ...]
    """Largest first; what is missing to the total is in smaller ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationFacts:
    """One change of one storage; num_bytes is its size after it (before it, when freed)."""

    action: AllocationAction
    storage: int
    """Number of the storage within its rank, from 0."""
    num_bytes: int
    category: Category
    op: str | None
    """The aten op that made it, None when torch made it without one."""
    shape: tuple[int, ...] | None
    dtype: str | None
    phase: Phase | None
    module: str | None
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationFacts:
    """Something that happened in a rank and that only the diagnosis makes sense of."""

    name: str
    args: Args
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One thing that a check looked at in a run."""

    id: str
    is_passed: bool
    message: str
    """In the words of the check's author; the English sentence of `code`, if there is one."""
    code: str | None = None
    args: Args = field(default_factory=dict)
    in_languages: Mapping[str, str] = field(default_factory=dict)
    """The author's words by language, `en` among them; empty where `code` says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProblem:
    """Why a check came to no verdict of its own: never a pass, and never the learner's fault."""

    code: str
    message: str
    args: Args = field(default_factory=dict)
