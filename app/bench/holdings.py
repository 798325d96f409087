"""What a server holds of its machine, so that two moments can be compared. May import processes.

Whoever counts becomes a subreaper first: what a server leaves behind then falls to it and is seen.
"""

import ctypes
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.bench.processes import POLL_S, Identity, Process, below, process_table, zygotes

SETTLE_S = 0.5
SETTLE_LIMIT_S = 30.0
_PR_SET_CHILD_SUBREAPER = 36
_CGROUPS = Path("/sys/fs/cgroup")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is looked at, not written to
_SEGMENTS = Path("/proc/sysvipc/shm")
_OUR_NAMES = "academy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """How many there are of each thing that a run could leave behind."""

    processes: int
    descriptors: int
    """Of the server and its warm parents, files of the database left out."""
    namespaces: int
    mounts: int
    cgroups: int
    scratch_files: int
    shared_memory: int

    def beyond(self, base: "Holdings") -> dict[str, int]:
        """What there is more than at another moment, by its name."""
        was = dataclasses.asdict(base)
        more = {name: value - was[name] for name, value in dataclasses.asdict(self).items()}
        return {name: value for name, value in more.items() if value > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Counts what belongs to a server that this process has started."""

    data_dir: Path
    others: frozenset[Identity]
    """What descended from this process before."""

    def holdings(self, server: int) -> Holdings:
        """What is held now; server is the pid of the one that serves."""
        self.reap(server)
        table = process_table()
        ours = self.processes(table)
        pids = {process.pid for process in ours}
        keepers = [server, *(zygote.pid for zygote in zygotes(server, table))]
        return Holdings(
            processes=len(ours),
            descriptors=sum(self._num_descriptors(pid) for pid in keepers),
            namespaces=len({name for pid in pids for name in _links(Path(f"/proc/{pid}/ns"))}),
            mounts=sum(len(_lines(Path(f"/proc/{pid}/mountinfo"))) for pid in keepers),
            cgroups=sum(_is_ours(folder, pids) for folder in _our_cgroups()),
            scratch_files=len(list(Path(tempfile.gettempdir()).glob(f"{_OUR_NAMES}-*"))),
            shared_memory=len(os.listdir(_SHARED_MEMORY)) + len(_lines(_SEGMENTS)),
        )

    def processes(self, table: Mapping[int, Process]) -> list[Process]:
        """Everything that has descended from this process since, whoever its parent was."""
        return [p for p in below(os.getpid(), table) if p.identity not in self.others]

    def settled(self, server: int) -> Holdings:
        """What is held once that no longer changes, or when that has taken too long."""
        end_s = time.monotonic() + SETTLE_LIMIT_S
        now, since_s = self.holdings(server), time.monotonic()
        while time.monotonic() < min(end_s, since_s + SETTLE_S):
            time.sleep(POLL_S)
            if (found := self.holdings(server)) != now:
                now, since_s = found, time.monotonic()
        return now

    def left_over(self, server: int, base: Holdings) -> dict[str, int]:
        """What stays beyond the base, however long one waits."""
        end_s = time.monotonic() + SETTLE_LIMIT_S
        while (more := self.holdings(server).beyond(base)) and time.monotonic() < end_s:
            time.sleep(POLL_S)
        return more

    def reap(self, server: int) -> None:
        """Let go of orphans that have fallen to this process and ended."""
        for process in self.processes(process_table()):
            if process.parent == os.getpid() and process.state == "Z" and process.pid != server:
                try:
                    os.waitpid(process.pid, os.WNOHANG)
                except ChildProcessError:
                    continue

    def _num_descriptors(self, pid: int) -> int:
        # How many connections to the database are kept open depends on how many were busy at once.
        own = str(self.data_dir)
        return sum(not target.startswith(own) for target in _links(Path(f"/proc/{pid}/fd")))


@contextmanager
def keeping(data_dir: Path) -> Iterator[Keeper]:
    """Adopt orphans while the block runs, and count what it starts."""
    others = frozenset(process.identity for process in below(os.getpid(), process_table()))
    keeper = Keeper(data_dir=data_dir.resolve(), others=others)
    _adopt_orphans(value=True)
    try:
        yield keeper
    finally:
        _adopt_orphans(value=False)
        keeper.reap(server=-1)


def _adopt_orphans(*, value: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(value), 0, 0, 0)


def _links(folder: Path) -> list[str]:
    """Where the links of a folder of /proc lead; those that are gone meanwhile are left out."""
    found = []
    try:
        for name in os.listdir(folder):
            found.append(_target(folder / name))
    except OSError:  # the process has just ended
        return []
    return [target for target in found if target]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _our_cgroups() -> list[Path]:
    return [
        Path(folder)
        for folder, _, _ in os.walk(_CGROUPS)
        if _OUR_NAMES in os.path.relpath(folder, _CGROUPS)
    ]


def _is_ours(folder: Path, pids: set[int]) -> bool:
    """Whether a control group is empty or holds our processes: others may serve here too."""
    members = _lines(folder / "cgroup.procs")
    return not members or any(member.isdigit() and int(member) in pids for member in members)
