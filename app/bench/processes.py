"""The processes of this machine as /proc shows them. May import engine.sandbox.linux.

Who is whose child tells the parts of an executor apart: the warm parent is the topmost process with
the ranks' image name, supervisors are its children, and below them is what runs programs.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.sandbox.linux import IMAGE_NAME

POLL_S = 0.02
Identity = tuple[int, int]
"""A pid and when it started, in clock ticks: pids come round again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process at one moment."""

    pid: int
    parent: int
    name: str
    state: str
    start_ticks: int

    @property
    def identity(self) -> Identity:
        return self.pid, self.start_ticks


def process_table() -> dict[int, Process]:
    """All processes of this pid namespace, by pid."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (process := _read(int(entry))):
            found[process.pid] = process
    return found


def _read(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(
        pid=pid, parent=int(fields[1]), name=name, state=fields[0], start_ticks=int(fields[19])
    )


def below(pid: int, table: Mapping[int, Process]) -> list[Process]:
    """Everything that descends from a process, parents before their children."""
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    todo = [pid]
    while todo:
        mine = children.get(todo.pop(0), [])
        found += mine
        todo += [child.pid for child in mine]
    return found


def zygotes(pid: int, table: Mapping[int, Process]) -> list[Process]:
    """The warm parents that descend from a process; what has ended but is not reaped is none."""
    forks = [p for p in below(pid, table) if p.name == IMAGE_NAME and p.state != "Z"]
    pids = {fork.pid for fork in forks}
    return [fork for fork in forks if fork.parent not in pids]


def supervisors(zygote: Process, table: Mapping[int, Process]) -> list[Process]:
    """The supervisors of a warm parent, one for each parked slot and each run."""
    return [p for p in table.values() if p.parent == zygote.pid and p.name == IMAGE_NAME]


def command_of(pid: int) -> str:
    """A process's command line, its words parted by blanks; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def is_alive(identity: Identity) -> bool:
    """Whether that very process still runs; a zombie does not."""
    process = _read(identity[0])
    return process is not None and process.identity == identity and process.state not in "ZX"


def still_alive(identities: set[Identity], limit_s: float) -> set[Identity]:
    """Those of the processes that have not ended within limit_s."""
    end_s = time.monotonic() + limit_s
    left = {identity for identity in identities if is_alive(identity)}
    while left and time.monotonic() < end_s:
        time.sleep(POLL_S)
        left = {identity for identity in left if is_alive(identity)}
    return left


def kill_hard(pid: int) -> None:
    """SIGKILL, if the process is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
