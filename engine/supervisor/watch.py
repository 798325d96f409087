"""The watch over one run, from the program's arrival to its outcome.

May import program, events, wire and sandbox. One thread, one poll loop; nothing in it blocks.
"""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.errors import WireError
from engine.events import Started
from engine.grading.received import ExportGather
from engine.program import Program
from engine.sandbox.linux import children_of
from engine.supervisor.control import ControlLines, Ended, Failed, Pids
from engine.supervisor.gather import Gather
from engine.supervisor.handover import Parked, cpu_s, hand_over
from engine.supervisor.link import Link
from engine.supervisor.proc import kill_descendants
from engine.supervisor.verdict import Stop, all_dumped, is_deadlock, make_outcome
from engine.supervisor.watchdog import Watchdog

_READ_BYTES = 1 << 16
_TICK_S = 0.05
_LAST_BYTES = 128 * 1024
_STACK_PATIENCE_S, _BUSY_PATIENCE_S = 0.25, 1.0
_DRAIN_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class _Source:
    kind: Literal["stdout", "stderr", "trace", "stack", "export", "control", "init", "executor"]
    rank: int


class Watch:
    """Watches one run."""

    def __init__(self, parked: Parked, program: Program, connection: socket.socket) -> None:
        self.parked, self.program, self.connection = parked, program, connection
        self.limits = program.limits
        self.link = Link(connection)
        self.start_ns = time.monotonic_ns()
        self.gather = Gather(program.world_size, self.limits, self.start_ns, self.link.send)
        self.gather.takes_verdict = program.evidence_bytes is not None
        self.exports = ExportGather(program)
        self.filename = f"{parked.folder}/{program.name}"
        self.watchdog = Watchdog(parked, program, self.gather)
        self.stop: Stop | None = None
        self.poller = select.poll()
        self.sources: dict[int, _Source] = {}
        self.control = ControlLines()
        self.rank_of_pid: dict[int, int] = {}
        self.init_is_gone = False
        self.wall_end_s = time.monotonic() + self.limits.wall_s
        self.grace_end_s: float | None = None
        self.next_tick_s, self.last_activity_s = 0.0, time.monotonic()
        self.stacks_due_s: float | None = None
        self.stacks_end_s = 0.0
        self.after_stacks: Callable[[], None] | None = None

    # -------------------------------------------------------------- start
    def run(self, evidence: bytes = b"") -> None:
        """Hand the program over, watch until init is gone, send the outcome."""
        self.send_started()
        self.register()
        if not hand_over(self.parked, self.program, evidence) and self.stop is None:
            self.stop = "engine"
        while not self.init_is_gone:
            self.step()
        self.reap()
        self.read_the_rest()
        self.send_outcome()
        self.link.drain(_DRAIN_LIMIT_S)

    def send_started(self) -> None:
        self.link.send(
            Started(
                rank=-1,
                seq=self.gather.next_seq(-1),
                at_ns=0,
                world_size=self.program.world_size,
                device=self.parked.runs_on,
                tier=self.parked.tier,
                simulated_ranks=self.program.simulated_ranks,
            )
        )
        if not self.parked.is_walled:
            self.gather.note(-1, "unsandboxed", {})

    def register(self) -> None:
        pipes = self.parked.pipes
        for rank in range(self.program.world_size):
            for kind in ("stdout", "stderr", "trace", "stack", "export"):
                self.add(getattr(pipes.ranks[rank], kind).read, _Source(kind, rank))
        self.add(pipes.control.read, _Source("control", -1))
        self.add(os.pidfd_open(self.parked.init), _Source("init", -1))
        self.add(self.connection.fileno(), _Source("executor", -1))

    def add(self, descriptor: int, source: _Source) -> None:
        if source.kind not in ("init", "executor"):
            os.set_blocking(descriptor, False)
        self.sources[descriptor] = source
        self.poller.register(descriptor, select.POLLIN)

    # -------------------------------------------------------------- the loop
    def step(self) -> None:
        """Wait for the next thing to happen and deal with it."""
        now_s = time.monotonic()
        deadlines = [self.next_tick_s, self.wall_end_s, self.grace_end_s, self.stacks_due_s]
        wait_s = min(d for d in deadlines if d is not None) - now_s
        if self.link.has_backlog:
            wait_s = min(wait_s, 0.005)
        for descriptor, _ in self.poller.poll(max(0.0, wait_s * 1000)):
            source = self.sources[descriptor]
            if self.link.is_full and source.kind not in ("init", "executor", "control"):
                continue
            self.read(descriptor, source)
        self.link.flush()
        self.check(time.monotonic())

    def read(self, descriptor: int, source: _Source) -> None:
        match source.kind:
            case "init":
                self.init_is_gone = True
            case "executor":
                self.hear_executor(descriptor)
            case _:
                try:
                    data = os.read(descriptor, _READ_BYTES)
                except BlockingIOError:
                    return
                if data:
                    self.feed(source, data)
                else:
                    self.poller.unregister(descriptor)
                    del self.sources[descriptor]

    def feed(self, source: _Source, data: bytes) -> None:
        match source.kind:
            case "stdout" | "stderr":
                self.last_activity_s = time.monotonic()
                self.gather.output(source.rank, source.kind, data)
            case "trace":
                self.last_activity_s = time.monotonic()
                self.gather.trace(source.rank, data)
                self.link.tell_begun(has_begun=self.gather.has_begun)
                self.begin_grace_if_failed()
            case "stack":
                self.gather.stack(source.rank, data)
            case "export":
                self.exports.take(source.rank, data)
            case _:
                self.hear_init(data)
        if self.gather.output_bytes > self.limits.output_bytes:
            self.kill("output")
        elif self.gather.is_over_trace_limit:
            self.kill("trace")

    def hear_executor(self, descriptor: int) -> None:
        try:
            said = os.read(descriptor, 64)
        except BlockingIOError:
            return
        except ConnectionResetError:
            said = b""
        self.poller.unregister(descriptor)
        del self.sources[descriptor]
        self.kill("cancelled" if said else "executor_gone")

    def hear_init(self, data: bytes) -> None:
        try:
            said = self.control.feed(data)
        except WireError:
            self.kill("engine")
            return
        for one in said:
            match one:
                case Pids():
                    self.rank_of_pid = dict(one.rank_of_pid)
                case Ended() if one.rank < self.program.world_size:
                    self.rank_ended(one.rank, one.exit, one.cpu_s)
                case Failed() if self.stop is None:
                    self.stop = "engine"

    def rank_ended(self, rank: int, exit_code: int, cpu_s: float) -> None:
        state = self.gather.ranks[rank]
        state.has_ended, state.exit, state.cpu_s = True, exit_code, cpu_s
        self.last_activity_s = time.monotonic()
        if exit_code == -signal.SIGKILL and self.watchdog.has_kernel_killed():
            self.kill("memory")
        if exit_code != 0 and self.stop is None:
            self.gather.rank_failed(rank)
            self.begin_grace_if_failed()

    def begin_grace_if_failed(self) -> None:
        if self.gather.first_failed_rank is not None and self.grace_end_s is None:
            self.grace_end_s = time.monotonic() + self.limits.peer_grace_s

    # -------------------------------------------------------------- limits
    def check(self, now_s: float) -> None:
        if self.stacks_due_s is not None and now_s >= self.stacks_due_s:
            is_time = now_s >= self.stacks_end_s or all_dumped(self.gather)
            self.stacks_due_s = None if is_time else now_s + _TICK_S
            if is_time and self.after_stacks:
                then, self.after_stacks = self.after_stacks, None
                then()
        if self.grace_end_s is not None and now_s >= self.grace_end_s:
            self.grace_end_s = None
            self.ask_for_stacks(lambda: self.kill("peer"))
        if now_s >= self.wall_end_s:
            self.wall_end_s = float("inf")
            self.ask_for_stacks(lambda: self.kill("wall"))
        if now_s >= self.next_tick_s:
            self.next_tick_s = now_s + _TICK_S
            self.tick(now_s)

    def tick(self, now_s: float) -> None:
        usage = self.watchdog.look(self.rank_of_pid)
        if exceeded := self.watchdog.exceeded(usage):
            self.kill(exceeded)
        has_stalled = self.watchdog.has_stalled(usage, now_s, self.last_activity_s)
        if has_stalled and len(self.gather.ranks) > 1 and self.after_stacks is None:
            self.watchdog.begin_anew(now_s)
            self.ask_for_stacks(lambda: self.kill_if_hung(now_s))

    def kill_if_hung(self, asked_s: float) -> None:
        if self.last_activity_s > asked_s:
            return  # a late rank came while the stacks were dumped
        if is_deadlock(self.gather, self.filename, self.program.source.splitlines()):
            self.kill("stall")

    def ask_for_stacks(self, then: Callable[[], None]) -> None:
        """Have every rank dump its Python stack, and go on with `then` a moment later."""
        for state in self.gather.ranks:
            state.stack_text.clear()
        self.after_stacks = then
        self.stacks_due_s = time.monotonic() + _STACK_PATIENCE_S
        self.stacks_end_s = self.stacks_due_s + _BUSY_PATIENCE_S
        self.signal_init(signal.SIGUSR2)

    def kill(self, why: Stop) -> None:
        """Stop everything of this run; the first reason counts."""
        if self.stop is None:
            self.stop = why
        self.gather.is_hung |= why in ("stall", "wall")
        self.grace_end_s = None
        if not self.parked.owns_pids:
            kill_descendants(self.parked.init)
        self.signal_init(signal.SIGKILL)

    def signal_init(self, number: signal.Signals) -> None:
        if self.init_is_gone:  # reaped perhaps, and its pid another's
            return
        try:
            os.kill(self.parked.init, number)
        except ProcessLookupError:
            self.init_is_gone = True

    # -------------------------------------------------------------- the end
    def reap(self) -> None:
        """Wait for init; without a pid namespace, also end what it left to this subreaper."""
        os.waitpid(self.parked.init, 0)
        if self.stop is None and self.watchdog.has_kernel_killed():
            self.stop = "memory"
        while left := children_of(os.getpid()):
            for child in left:
                kill_descendants(child)
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)

    def read_the_rest(self) -> None:
        """What was written before the end is still in the pipes."""
        for descriptor, source in list(self.sources.items()):
            if source.kind in ("init", "executor"):
                continue
            # What a killed run still had in its pipes may be as much as it wanted: a little counts.
            left_bytes = _LAST_BYTES if self.stop else None
            while descriptor in self.sources and (left_bytes is None or left_bytes > 0):
                try:
                    data = os.read(descriptor, _READ_BYTES)
                except BlockingIOError:
                    break
                if not data:
                    break
                self.feed(source, data)
                left_bytes = None if left_bytes is None else left_bytes - len(data)
        self.gather.finish()

    def send_outcome(self) -> None:
        cpu_used_s = cpu_s() - self.parked.cpu_before_s
        self.link.send_exports(self.exports.finished(r.exit == 0 for r in self.gather.ranks))
        outcome = make_outcome(self.gather, self.stop, self.limits.cpu_s, self.filename, cpu_used_s)
        self.link.send(outcome)
