"""Parks one sandbox and, when a program comes, watches it. May import sandbox, wire and the watch.

This is the whole life of a supervisor process, a fork of the zygote.
"""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from engine.errors import EngineCrashed, WireError
from engine.program import MAX_RANKS
from engine.sandbox.cgroups import GroupPlace, RunGroup, make_group, sweep
from engine.sandbox.gpus import device_nodes
from engine.sandbox.init import InitPlan, RankStart, run_init
from engine.sandbox.launch import launch_open, launch_walled
from engine.sandbox.lock import Lock
from engine.sandbox.pipes import make_run_pipes
from engine.sandbox.root import WORK
from engine.sandbox.scratch import give_scratch, make_scratch, remove_scratch, sweep_scratch
from engine.supervisor.control import MAX_LINE_BYTES, Failed, Ready, decode_said
from engine.supervisor.handover import Parked, cpu_s
from engine.supervisor.watch import Watch
from engine.wire import decode_program

_MAX_PROGRAM_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkPlan:
    """What every sandbox of this zygote has in common."""

    lock: Lock | None
    tier: str
    num_parked_ranks: int
    rank_main: Callable[[RankStart], NoReturn]
    store_main: Callable[[int, Lock | None], NoReturn]
    gpus: tuple[int, ...] = ()
    """Which GPUs the ranks reach, one each; empty for ranks on CPU."""
    group_place: GroupPlace | None = None
    """Where each run gets a control group of its own; None where this machine grants none."""

    @property
    def is_walled(self) -> bool:
        """Whether runs have namespaces and a root of their own."""
        return self.lock is not None and self.lock.is_walled

    def reaching(self, gpus: tuple[int, ...]) -> "ParkPlan":
        """The plan of one sandbox whose ranks reach these GPUs and no other."""
        if not gpus:
            return self
        lock = self.lock
        if lock is not None:
            lock = replace(lock, plan=replace(lock.plan, gpu_nodes=device_nodes(gpus)))
        return replace(self, lock=lock, gpus=gpus, num_parked_ranks=len(gpus))


def supervise(connection: socket.socket, plan: ParkPlan) -> NoReturn:
    """Park, say so, wait for a program, watch it, end. The executor's hang-up ends it too."""
    scratch = "" if plan.is_walled else make_scratch()
    code, group = 0, None
    try:
        if plan.group_place is not None:
            sweep(plan.group_place)
            group = make_group(plan.group_place)
        if scratch:
            sweep_scratch()
        parked = _park(plan, scratch, group)
        connection.sendall(b'{"parked":true}\n')
        line, rest = _read_program(connection)
        if line:
            program = decode_program(line)
            if parked.tier == "fenced" and program.world_size > 1:
                raise EngineCrashed("a fenced run has one rank")
            evidence, rest = _read_evidence(connection, program.evidence_bytes or 0, rest)
            watch = Watch(parked, program, connection)
            if rest:
                watch.kill("cancelled")  # the cancellation came along with the program
            watch.run(evidence)
        else:
            os.kill(parked.init, signal.SIGKILL)
            os.waitpid(parked.init, 0)
    except (EngineCrashed, WireError, OSError) as error:
        _say_failed(connection, str(error))
        code = 1
    finally:
        if scratch:
            remove_scratch(scratch)
        if group is not None:
            group.remove()
    connection.close()
    os._exit(code)


def _say_failed(connection: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):  # perhaps nobody is left to tell
        connection.sendall(json.dumps({"failed": why[:500]}).encode() + b"\n")


def _park(plan: ParkPlan, scratch: str, group: RunGroup | None) -> Parked:
    """Build the sandbox and wait until its ranks wait for a program."""
    before_s = cpu_s()
    pipes = make_run_pipes(MAX_RANKS)
    init_plan = InitPlan(
        pipes=pipes,
        lock=plan.lock,
        num_parked=plan.num_parked_ranks,
        folder=scratch or WORK,
        rank_main=plan.rank_main,
        store_main=plan.store_main,
        gpus=plan.gpus,
    )

    def init() -> NoReturn:
        run_init(init_plan)

    without = plan.lock.without if plan.lock else frozenset()
    if plan.lock is not None and plan.lock.is_fenced:
        give_scratch(scratch, plan.lock)
    pid = launch_walled(init, without, group) if plan.is_walled else launch_open(init, group)
    pipes.close_init_side()
    said = decode_said(_read_line(pipes.control.read) or b'{"failed":"its first process died"}')
    if not isinstance(said, Ready):
        raise EngineCrashed(f"no sandbox: {said.why if isinstance(said, Failed) else said}")
    return Parked(
        pipes=pipes,
        init=pid,
        tier=plan.tier,
        is_walled=plan.lock is not None,
        owns_pids=plan.is_walled and "pid" not in without,
        cpu_before_s=before_s,
        folder=scratch or WORK,
        runs_on="cuda" if plan.gpus else "cpu",
        without=without,
        group=group,
    )


def _read_line(descriptor: int) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
        piece = os.read(descriptor, 1)
        if not piece:
            break
        line += piece
    return bytes(line)


def _read_program(connection: socket.socket) -> tuple[bytes, bytes]:
    """One line from the executor and what came after it; empty when it hung up."""
    received = bytearray()
    while b"\n" not in received:
        piece = connection.recv(1 << 16)
        if not piece or len(received) > _MAX_PROGRAM_BYTES:
            return b"", b""
        received += piece
    line, _, rest = bytes(received).partition(b"\n")
    return line, rest


def _read_evidence(connection: socket.socket, num_bytes: int, rest: bytes) -> tuple[bytes, bytes]:
    """What comes behind a check, and what came after that; cut short if the executor hung up."""
    received = bytearray(rest)
    while len(received) < num_bytes:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        received += piece
    return bytes(received[:num_bytes]), bytes(received[num_bytes:])
