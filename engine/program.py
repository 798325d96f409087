"""What is to be run: a Program and its Limits. May import the standard library only."""

import math
from dataclasses import dataclass, field, fields
from typing import Literal

Device = Literal["auto", "cpu", "cuda"]
Detail = Literal["off", "summary", "allocations"]
"""Nothing traced; memory at boundaries and peaks; every allocation as well."""

MAX_RANKS = 8
MAX_SIMULATED_RANKS = 4096
MAX_SOURCE_BYTES = 256 * 1024
MAX_EXPORTS = 64
MAX_EVIDENCE_BYTES = 128 * 1024 * 1024
"""What a check can be told of the run that it judges."""
CHECK_WALL_S = 10.0
MIB = 1024 * 1024
NUM_DESCRIPTORS = 512
"""Files and sockets that one process of a run may have open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may take; the defaults are those of the design.

    Raises: ValueError when one is not a positive number, or the fraction above 1.
    """

    wall_s: float = 20.0
    cpu_s: int = 40
    memory_bytes: int = 1024 * MIB
    """For all ranks together, above what the zygote already holds."""
    shown_bytes: int = 256 * 1024
    """Output shown per rank; what exceeds it is dropped with a note."""
    output_bytes: int = 8 * MIB
    """Output of all ranks after which the run is stopped."""
    trace_bytes: int = 32 * MIB
    """Trace lines of all ranks after which the run is stopped."""
    trace_events: int = 100_000
    """Events of all ranks after which the run is stopped."""
    gpu_memory_fraction: float = 0.9
    """Share of a GPU's memory that the tensors of its rank may take."""
    export_bytes: int = 16 * MIB
    """What all ranks together may hand out at their end; more is not passed on."""
    scratch_bytes: int = 64 * MIB
    scratch_inodes: int = 4096
    peer_grace_s: float = 2.0
    """How long the other ranks may go on after one has failed."""
    stall_s: float = 3.0
    """How long a collective may wait without progress anywhere before it counts as a deadlock."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if not 0 < getattr(self, limit.name) < math.inf:
                raise ValueError(f"the limit {limit.name} must be a positive number")
        if self.gpu_memory_fraction > 1:
            raise ValueError("the limit gpu_memory_fraction must be at most 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What judges a program's run: Python of the lesson's author, hidden from the learner.

    It never enters a process that runs a program; see `engine.grading`.
    """

    source: str
    name: str = "check.py"
    limits: Limits = field(default_factory=lambda: Limits(wall_s=CHECK_WALL_S))
    """Those of the check itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One torchrun program.

    Raises: ValueError when source or world_size is outside what the engine accepts.
    """

    source: str
    world_size: int
    device: Device = "auto"
    name: str = "program.py"
    """File name that tracebacks and `__file__` show."""
    limits: Limits = field(default_factory=Limits)
    detail: Detail = "summary"
    """How much of each rank is traced."""
    simulated_ranks: int | None = None
    """Ranks that the one process stands for, with tensors that hold no data; None: real ranks."""
    exports: tuple[str, ...] = ()
    """Names of the program's own variables whose values each rank hands out at its end."""
    evidence_bytes: int | None = None
    """Set when the source is a check's: so much about the run that it judges comes behind it."""

    def __post_init__(self) -> None:
        if not 1 <= self.world_size <= MAX_RANKS:
            raise ValueError(f"ranks must be from 1 to {MAX_RANKS}, not {self.world_size}")
        try:
            size = len(self.source.encode())
        except UnicodeEncodeError:  # lone surrogates: no file holds them, and no line of JSON
            raise ValueError("a program must be text that UTF-8 can hold") from None
        if size > MAX_SOURCE_BYTES:
            raise ValueError(f"a program may have {MAX_SOURCE_BYTES} bytes, this one has {size}")
        if not self.name.isprintable() or "/" in self.name or self.name in ("", ".", ".."):
            raise ValueError("a program's name must be a plain file name")
        if not all(name.isidentifier() and len(name) <= 100 for name in self.exports):
            raise ValueError("what a program exports must be names of variables")
        if len(self.exports) > MAX_EXPORTS:
            raise ValueError(f"a program may export {MAX_EXPORTS} names, not {len(self.exports)}")
        if self.evidence_bytes is not None and not 0 <= self.evidence_bytes <= MAX_EVIDENCE_BYTES:
            raise ValueError(f"a check may be told {MAX_EVIDENCE_BYTES} bytes of a run")
        if self.simulated_ranks is not None:
            if not 1 <= self.simulated_ranks <= MAX_SIMULATED_RANKS:
                raise ValueError(
                    f"simulated ranks must be from 1 to {MAX_SIMULATED_RANKS}, "
                    f"not {self.simulated_ranks}"
                )
            if self.world_size != 1:
                raise ValueError(f"a simulation is one process, not {self.world_size}")
