"""A parked sandbox, and how it gets its program. May import program, devices,
sandbox and wire."""

import contextlib
import os
from dataclasses import dataclass

from engine.devices import RunsOn
from engine.program import Program
from engine.sandbox.cgroups import RunGroup
from engine.sandbox.choice import Layer
from engine.sandbox.limits import num_processes
from engine.sandbox.pipes import RunPipes
from engine.wire import encode_program

_NUM_OF_THE_ENGINE = 16
"""Processes and threads of a run that are none of its ranks': init and the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A sandbox that waits for its program."""

    pipes: RunPipes
    init: int
    tier: str
    is_walled: bool
    owns_pids: bool
    """Whether it has a pid namespace: then the kernel ends everything as soon as init ends."""
    cpu_before_s: float
    """CPU time of the supervisor process before it parked."""
    folder: str
    """Working folder of the ranks, as they see it."""
    runs_on: RunsOn
    """What its ranks compute on."""
    without: frozenset[Layer] = frozenset()
    """Layers that a test leaves out."""
    group: RunGroup | None = None
    """What bounds it in the kernel; None where the machine grants no control group."""


def hand_over(parked: Parked, program: Program, evidence: bytes = b"") -> bool:
    """Order the ranks, then give each its program; ranks that are not needed get nothing.

    Behind a check comes the evidence of the run that it judges.

    Returns False when init is already gone.
    """
    limits = program.limits
    if parked.group is not None:
        parked.group.bound(
            more_bytes=limits.memory_bytes + limits.scratch_bytes,
            num_processes=num_processes(program.world_size) + _NUM_OF_THE_ENGINE,
        )
    pipes = parked.pipes
    line = encode_program(program) + evidence
    is_there = True
    try:
        os.write(pipes.order.write, str(program.world_size).encode())
    except BrokenPipeError:
        is_there = False
    for rank, rank_pipes in enumerate(pipes.ranks):
        with contextlib.suppress(BrokenPipeError):  # init reports how such a rank ended
            left = memoryview(line if rank < program.world_size else b"")
            while left:
                left = left[os.write(rank_pipes.program.write, left) :]
    # A rank begins at the end of its program: not before all others have read theirs, or the first
    # could stop another one, and with it whoever writes to that one.
    for rank_pipes in pipes.ranks:
        os.close(rank_pipes.program.write)
    os.close(pipes.order.write)
    return is_there


def cpu_s() -> float:
    """CPU time of this process and of all children that it has reaped."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
