"""The first process of a run: builds the walls, starts ranks, reports how they ended.

May import the rest of engine.sandbox. It is pid 1 of the run's pid namespace, so when it ends the
kernel kills whatever is left. It never runs learner code and reads nothing that a rank wrote.
"""

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from engine.program import MAX_RANKS
from engine.sandbox import linux, root
from engine.sandbox.fence import give_up_host_powers
from engine.sandbox.limits import prefer_as_victim
from engine.sandbox.lock import Lock, give_up_powers
from engine.sandbox.pipes import RankPipes, RunPipes

WALLED_PORT = 29500
INIT_FAILED = 96
RANK_FAILED = 97


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStart:
    """What a freshly forked rank gets from init."""

    rank: int
    pipes: RankPipes
    port: int
    lock: Lock | None
    """None where the operator runs without a sandbox."""
    gpus: tuple[int, ...] = ()
    """GPUs that the run's ranks share, one each; empty for ranks on CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitPlan:
    """What init is to do; the two callables never return."""

    pipes: RunPipes
    lock: Lock | None
    num_parked: int
    """Ranks to fork before the program is known."""
    folder: str
    """The ranks' working folder."""
    rank_main: Callable[[RankStart], NoReturn]
    store_main: Callable[[int, Lock | None], NoReturn]
    """Hosts the rendezvous store on a listening socket, as torchrun's agent does."""
    gpus: tuple[int, ...] = ()


def run_init(plan: InitPlan) -> NoReturn:
    """Be pid 1 of a run; always ends in os._exit."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        plan.pipes.close_supervisor_side()
        _Init(plan).run()
    except OSError as error:
        _say(plan.pipes.control.write, {"failed": str(error)[:300]})
    os._exit(INIT_FAILED)


class _Init:
    def __init__(self, plan: InitPlan) -> None:
        self.plan = plan
        self.ranks: dict[int, int] = {}  # pid -> rank
        without = plan.lock.without if plan.lock else frozenset()
        self.is_walled = plan.lock is not None and plan.lock.is_walled
        self.has_network = self.is_walled and "network" not in without
        self.is_dumpable = plan.lock is None or "dumpable" in without
        self.port = WALLED_PORT if self.has_network else 0

    def run(self) -> NoReturn:
        prefer_as_victim()
        if self.plan.lock and self.is_walled:
            root.build_root(self.plan.lock.plan, self.plan.lock.without)
            if self.has_network:
                linux.loopback_up()
            socket.sethostname("sandbox")
        os.chdir(self.plan.folder)
        linux.set_dumpable(value=self.is_dumpable)
        if self.is_walled or self.plan.lock is None:  # no rank of a fenced run could reach it
            self.host_store()
        for rank in range(self.plan.num_parked):
            self.spawn(rank)
        _say(self.plan.pipes.control.write, {"parked": len(self.ranks)})
        ordered = os.read(self.plan.pipes.order.read, 16)
        if not ordered:
            os._exit(0)
        world_size = min(int(ordered), MAX_RANKS)
        for rank in range(self.plan.num_parked, world_size):
            self.spawn(rank)
        self.give_up_powers()
        self.close_pipes()
        pids = {str(rank): pid for pid, rank in self.ranks.items() if rank < world_size}
        _say(self.plan.pipes.control.write, {"pids": pids})
        signal.signal(signal.SIGUSR2, self.ask_for_stacks)
        self.reap(world_size)
        os._exit(0)

    def host_store(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        if os.fork() == 0:
            self.in_child()
            for rank in self.plan.pipes.ranks:
                _close_rank(rank)
            self.plan.store_main(listener.detach(), self.plan.lock)
        listener.close()

    def spawn(self, rank: int) -> None:
        pipes = self.plan.pipes.ranks[rank]
        pid = os.fork()
        if pid == 0:
            self.in_child()
            start = RankStart(
                rank=rank,
                pipes=pipes,
                port=self.port,
                lock=self.plan.lock,
                gpus=self.plan.gpus,
            )
            self.plan.rank_main(start)
        self.ranks[pid] = rank

    def in_child(self) -> None:
        os.close(self.plan.pipes.order.read)
        os.close(self.plan.pipes.control.write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    def give_up_powers(self) -> None:
        if self.plan.lock and self.is_walled:
            give_up_powers(self.plan.lock)
        elif self.plan.lock:
            give_up_host_powers(self.plan.lock)
        else:
            linux.set_no_new_privs()
        linux.set_dumpable(value=self.is_dumpable)
        linux.die_with_parent(signal.SIGKILL)  # a change of user id has cleared it

    def close_pipes(self) -> None:
        """Only ranks may hold their pipes, so that the supervisor sees when a rank lets go."""
        os.close(self.plan.pipes.order.read)
        for rank in self.plan.pipes.ranks:
            _close_rank(rank)

    def ask_for_stacks(self, *_: object) -> None:
        for pid in self.ranks:
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                continue

    def reap(self, world_size: int) -> None:
        left = {rank for rank in self.ranks.values() if rank < world_size}
        while left:
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                return
            rank = self.ranks.pop(pid, None)
            if rank in left:
                left.discard(rank)
                ended: dict[str, object] = {
                    "ended": rank,
                    "exit": os.waitstatus_to_exitcode(status),
                    "cpu_s": round(usage.ru_utime + usage.ru_stime, 4),
                }
                _say(self.plan.pipes.control.write, ended)


def _close_rank(rank: RankPipes) -> None:
    os.close(rank.program.read)
    for pipe in rank.outward():
        os.close(pipe.write)


def _say(descriptor: int, what: dict[str, object]) -> None:
    os.write(descriptor, (json.dumps(what) + "\n").encode())
