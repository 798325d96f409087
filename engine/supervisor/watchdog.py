"""Looks twenty times a second at what a run takes. May import program, sandbox, gather and proc.

The memory and the CPU time of all of a run's processes count together, whoever started them. Where
a control group bounds the run, the kernel does so too; a kill of the kernel's is heard here.
"""

import time
from typing import Literal

from engine.program import Program
from engine.sandbox.scratch import is_over
from engine.supervisor.gather import Gather
from engine.supervisor.handover import Parked
from engine.supervisor.proc import TICKS_PER_S, Usage, measure, own_anonymous_bytes

_IDLE_TICKS_PER_S = 5
"""CPU use (in hundredths of a core) below which a run counts as standing still."""


class Watchdog:
    """What one run takes, and since when nothing in it moves."""

    def __init__(self, parked: Parked, program: Program, gather: Gather) -> None:
        self._parked = parked
        self._limits = program.limits
        self._gather = gather
        self._base_bytes = own_anonymous_bytes()
        self._ticks_of: dict[int, int] = {}
        self._ended_ticks = 0
        self._idle_from: tuple[float, int] = (time.monotonic(), 0)

    def look(self, rank_of_pid: dict[int, int]) -> Usage:
        """Measure now, and keep what each rank has held at most."""
        usage = measure(self._parked.init, self._base_bytes, rank_of_pid)
        for rank, held in usage.rank_bytes.items():
            if rank < len(self._gather.ranks):
                state = self._gather.ranks[rank]
                state.peak_bytes = max(state.peak_bytes, held)
        for pid, ticks in self._ticks_of.items():
            if usage.ticks_of.get(pid, -1) < ticks:  # it has ended, and perhaps its number is new
                self._ended_ticks += ticks
        self._ticks_of = usage.ticks_of
        return usage

    def exceeded(self, usage: Usage) -> Literal["memory", "cpu", "scratch"] | None:
        """The limit that the run has reached."""
        if self.has_kernel_killed():
            return "memory"
        if "watchdog" in self._parked.without:
            return None
        if usage.total_bytes > self._limits.memory_bytes:
            return "memory"
        if self._parked.tier == "fenced" and self._is_scratch_full():
            return "scratch"
        limit_s = self._limits.cpu_s * len(self._gather.ranks)
        return "cpu" if self._total_ticks > limit_s * TICKS_PER_S else None

    def _is_scratch_full(self) -> bool:
        return is_over(
            self._parked.folder,
            self._ticks_of,
            limit_bytes=self._limits.scratch_bytes,
            limit_inodes=self._limits.scratch_inodes,
        )

    def has_kernel_killed(self) -> bool:
        """Whether the run's control group was full, so that the kernel killed a process of it."""
        return self._parked.group is not None and self._parked.group.has_killed()

    def has_stalled(self, usage: Usage, now_s: float, last_activity_s: float) -> bool:
        """Whether nothing has moved for as long as a collective may wait; then it counts anew."""
        since_s, ticks = self._idle_from
        moved = self._total_ticks - ticks > _IDLE_TICKS_PER_S * max(now_s - since_s, 1.0)
        if moved or usage.is_runnable or last_activity_s > since_s:
            self._idle_from = (max(now_s, last_activity_s), self._total_ticks)
            return False
        return now_s - since_s > self._limits.stall_s

    def begin_anew(self, now_s: float) -> None:
        """Count the time without movement from now on."""
        self._idle_from = (now_s, self._total_ticks)

    @property
    def _total_ticks(self) -> int:
        """CPU time of the run's processes so far, those that have ended included."""
        return self._ended_ticks + sum(self._ticks_of.values())
