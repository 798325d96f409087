"""Parks one sandbox and, when a program comes, watches it. May import sandbox, wire and the watch.

This is the whole life of a supervisor process, a fork of the zygote.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from engine.errors import EngineCrashed, WireError
from engine.program import MAX_RANKS
from engine.sandbox.gpus import device_nodes
from engine.sandbox.init import InitPlan, RankStart, run_init
from engine.sandbox.launch import launch_open, launch_walled
from engine.sandbox.lock import Lock
from engine.sandbox.pipes import make_run_pipes
from engine.sandbox.root import WORK
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
    scratch = "" if plan.lock else tempfile.mkdtemp(prefix="academy-run-")
    code = 0
    try:
        parked = _park(plan, scratch)
        connection.sendall(b'{"parked":true}\n')
        line, rest = _read_program(connection)
        if line:
            watch = Watch(parked, decode_program(line), connection)
            if rest:
                watch.kill("cancelled")  # the cancellation came along with the program
            watch.run()
        else:
            os.kill(parked.init, signal.SIGKILL)
    except (EngineCrashed, WireError, OSError) as error:
        _say_failed(connection, str(error))
        code = 1
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    connection.close()
    os._exit(code)


def _say_failed(connection: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):  # perhaps nobody is left to tell
        connection.sendall(json.dumps({"failed": why[:500]}).encode() + b"\n")


def _park(plan: ParkPlan, scratch: str) -> Parked:
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
    pid = launch_walled(init, without) if plan.lock else launch_open(init)
    pipes.close_init_side()
    said = json.loads(_read_line(pipes.control.read) or b"{}")
    if "parked" not in said:
        raise EngineCrashed(f"no sandbox: {said.get('failed', 'its first process died')}")
    return Parked(
        pipes=pipes,
        init=pid,
        tier=plan.tier,
        is_walled=plan.lock is not None,
        owns_pids=plan.lock is not None and "pid" not in without,
        cpu_before_s=before_s,
        folder=scratch or WORK,
        runs_on="cuda" if plan.gpus else "cpu",
    )


def _read_line(descriptor: int) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
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
