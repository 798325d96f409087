"""Reads memory and CPU time of a run's processes from /proc, and ends them.

An unprivileged supervisor may not read its ranks' smaps, so memory is counted from `status`:
max(0, RssAnon - what the zygote already had) + RssShmem, over everything below init. A process that
has executed another program shares nothing with the zygote, so nothing is taken off for it.
"""

import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from engine.program import MAX_RANKS
from engine.sandbox.limits import num_processes
from engine.sandbox.linux import IMAGE_NAME, children_of, living_task

_MAX_PROCESSES = 2 * num_processes(MAX_RANKS)
"""More than a run may have, so that none goes unseen; it ends the walk where no limit holds."""
_MEMORY = ("RssAnon", "RssShmem")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Usage:
    """Memory in bytes at one moment, per rank and of the whole run; CPU in ticks per process."""

    rank_bytes: dict[int, int] = field(default_factory=dict)
    total_bytes: int = 0
    ticks_of: dict[int, int] = field(default_factory=dict)
    is_runnable: bool = False
    """Whether a process wants the processor: on a busy machine it may just not have got it."""


def own_anonymous_bytes() -> int:
    """RssAnon of this process: what every fork of it shares at first."""
    return _status(os.getpid()).anonymous_bytes


def measure(init: int, base_bytes: int, rank_of_pid: dict[int, int]) -> Usage:
    """Walk the tree below init; rank_of_pid maps pids as init sees them to ranks."""
    usage = Usage()
    todo: list[tuple[int, int | None]] = [(pid, None) for pid in children_of(init)]
    seen = 0
    while todo and seen < _MAX_PROCESSES:
        pid, rank = todo.pop()
        seen += 1
        status = _status(pid)
        if rank is None:
            rank = rank_of_pid.get(status.inner_pid)
        todo += [(child, rank) for child in children_of(pid)]
        shared_bytes = base_bytes if status.is_fork else 0
        held = max(0, status.anonymous_bytes - shared_bytes) + status.shared_bytes
        usage.total_bytes += held
        ticks, state = _ticks_and_state(pid)
        usage.ticks_of[pid] = ticks
        usage.is_runnable |= state in "RD"
        if rank is not None:
            usage.rank_bytes[rank] = usage.rank_bytes.get(rank, 0) + held
    return usage


@dataclass(slots=True)
class _Status:
    """What /proc/PID/status says; zeros when the process is gone."""

    is_fork: bool = False
    """Whether it still runs the zygote's image and so shares its memory."""
    anonymous_bytes: int = 0
    shared_bytes: int = 0
    inner_pid: int = -1


def _status(pid: int) -> _Status:
    found = _Status()
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return found
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        match name:
            case "Name":
                found.is_fork = rest.strip() == IMAGE_NAME
            case "NSpid":
                found.inner_pid = int(rest.split()[-1])
    held = _memory_lines(text) or _memory_lines(_living_thread(pid))
    found.anonymous_bytes = held.get("RssAnon", 0)
    found.shared_bytes = held.get("RssShmem", 0)
    return found


def _memory_lines(text: str) -> dict[str, int]:
    """Bytes by the names of a status; empty where its thread has ended and holds nothing."""
    lines = (line.partition(":") for line in text.splitlines())
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in lines if name in _MEMORY}


def _living_thread(pid: int) -> str:
    """The status of another thread: the process holds its memory until the last one ends."""
    place = living_task(pid)
    try:
        return Path(f"{place}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _ticks_and_state(pid: int) -> tuple[int, str]:
    """User and system time of a process in clock ticks, and its main thread's state."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0, "X"
    fields = text.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]), fields[0]


def kill_descendants(pid: int) -> None:
    """Kill everything below a process; needed only where no pid namespace holds it."""
    for child in children_of(pid):
        kill_descendants(child)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
