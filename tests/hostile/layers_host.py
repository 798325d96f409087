"""Runs one attack after the other in sandboxes that lack layers, and says which attacks succeeded.

Started by test_layers through `machine`: reads a list of Trial as JSON from its input and writes
one Answer per line. It is a warm parent itself, so each further sandbox costs a fork, not a start.
"""

import ctypes
import os
import signal
import socket
import sys
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from engine.events import Outcome, Output, Status
from engine.order import ZygoteOrder
from engine.program import Limits, Program
from engine.sandbox import linux
from engine.sandbox.choice import Layer, SandboxChoice
from engine.sandbox.tiers import choose
from engine.supervisor.link import BEGUN
from engine.supervisor.park import ParkPlan, supervise
from engine.wire import decode, encode_program
from engine.zygote import _arrange_memory, _warm

_ABOVE_RUNS = 400
SHARED_KEY = 0x5EC
PORT = 18999
ABSTRACT = "\0host-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An attack, and the layers that its sandbox lacks."""

    attack: str
    source: str
    without: tuple[Layer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How the attack ended: `says` is what it wrote."""

    attack: str
    without: tuple[Layer, ...]
    says: str
    status: Status
    has_groups: bool
    """Whether runs have control groups on this machine."""


def main(trials: list[Trial]) -> None:
    services = _serve()
    victim = _victim()
    linux.take_image_name()  # by it a supervisor knows forks of the warm parent
    order = ZygoteOrder(
        control=-1, num_parked_ranks=1, runs_on="cpu", sandbox=SandboxChoice(at_most="walled")
    )
    found = choose(order.sandbox)
    assert found.tier == "walled", found
    plan = _warm(found, order)
    filling = _arrange_memory()
    for trial in trials:
        says, status = _try(plan, trial, victim)
        answer = Answer(
            attack=trial.attack,
            without=trial.without,
            says=says,
            status=status,
            has_groups=plan.group_place is not None,
        )
        sys.stdout.buffer.write(TypeAdapter(Answer).dump_json(answer) + b"\n")
    os.kill(victim, signal.SIGKILL)
    del services, filling


def _victim() -> int:
    """The pid of a process; in a run's own namespace, which counts from 1, nobody has it."""
    while True:
        pid = os.fork()
        if pid == 0:
            if os.getpid() < _ABOVE_RUNS:
                os._exit(0)
            signal.pause()
        if pid >= _ABOVE_RUNS:
            return pid
        os.waitpid(pid, 0)


def _serve() -> list[socket.socket]:
    """What attacks reach for: an abstract socket, and a System V segment."""
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(ABSTRACT)
    unix.listen(64)
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", PORT))
    tcp.listen(64)
    create_for_all = 0o1000 | 0o666
    assert ctypes.CDLL(None).shmget(SHARED_KEY, 4096, create_for_all) >= 0
    return [unix, tcp]


def _try(plan: ParkPlan, trial: Trial, victim: int) -> tuple[str, Status]:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        os.setsid()
        assert plan.lock is not None
        lock = replace(plan.lock, without=frozenset(trial.without))
        place = None if "cgroup" in trial.without else plan.group_place
        supervise(theirs, replace(plan, lock=lock, group_place=place))
    theirs.close()
    limits = Limits(wall_s=10, memory_bytes=256 << 20)
    source = trial.source.replace("VICTIM", str(victim))
    text, status = "", None
    with ours, ours.makefile("rb") as lines:
        said = lines.readline()
        assert said == b'{"parked":true}\n', said
        ours.sendall(encode_program(Program(source=source, world_size=1, limits=limits)))
        for line in lines:
            event = decode(line) if line != BEGUN else None
            text += event.text if isinstance(event, Output) else ""
            status = event.status if isinstance(event, Outcome) else status
    os.waitpid(pid, 0)
    assert status is not None, "a run ended without an outcome"
    return text, status


if __name__ == "__main__":
    main(TypeAdapter(list[Trial]).validate_json(sys.stdin.buffer.read()))
