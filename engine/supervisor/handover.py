"""A parked sandbox, and how it gets its program. May import program, devices,
sandbox and wire."""

import contextlib
import os
from dataclasses import dataclass

from engine.devices import RunsOn
from engine.program import Program
from engine.sandbox.pipes import RunPipes
from engine.wire import encode_program


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


def hand_over(parked: Parked, program: Program) -> bool:
    """Order the ranks, then give each its program; ranks that are not needed get nothing.

    Returns False when init is already gone.
    """
    pipes = parked.pipes
    line = encode_program(program)
    is_there = True
    try:
        os.write(pipes.order.write, str(program.world_size).encode())
    except BrokenPipeError:
        is_there = False
    for rank, rank_pipes in enumerate(pipes.ranks):
        with contextlib.suppress(BrokenPipeError):  # init reports how such a rank ended
            left = line if rank < program.world_size else b""
            while left:
                left = left[os.write(rank_pipes.program.write, left) :]
        os.close(rank_pipes.program.write)
    os.close(pipes.order.write)
    return is_there


def cpu_s() -> float:
    """CPU time of this process and of all children that it has reaped."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
