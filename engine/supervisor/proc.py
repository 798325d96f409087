"""Reads memory and CPU time of a run's processes from /proc. Standard library only.

An unprivileged supervisor may not read its ranks' smaps, so memory is counted from `status`:
max(0, RssAnon - what the zygote already had) + RssShmem, over everything below init.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from engine.sandbox.linux import children_of

_MAX_PROCESSES = 512


@dataclass(slots=True)
class Usage:
    """Memory in bytes and CPU in ticks at one moment; per rank, and of the whole run."""

    rank_bytes: dict[int, int] = field(default_factory=dict)
    total_bytes: int = 0
    total_ticks: int = 0


def own_anonymous_bytes() -> int:
    """RssAnon of this process: what every fork of it shares at first."""
    return _status(os.getpid()).get("RssAnon", 0) * 1024


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
            rank = rank_of_pid.get(status.get("NSpid", -1))
        todo += [(child, rank) for child in children_of(pid)]
        held = max(0, status.get("RssAnon", 0) * 1024 - base_bytes)
        held += status.get("RssShmem", 0) * 1024
        usage.total_bytes += held
        usage.total_ticks += _ticks(pid)
        if rank is not None:
            usage.rank_bytes[rank] = usage.rank_bytes.get(rank, 0) + held
    return usage


def _status(pid: int) -> dict[str, int]:
    """The last number of the lines that matter, in the units of the file (kB)."""
    found = {}
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("RssAnon", "RssShmem"):
            found[name] = int(rest.split()[0])
        elif name == "NSpid":
            found[name] = int(rest.split()[-1])
    return found


def _ticks(pid: int) -> int:
    """User and system time of a process in clock ticks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
