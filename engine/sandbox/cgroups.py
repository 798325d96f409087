"""A control group for each run: the kernel's own bound on all that its processes take together.

May import engine.sandbox.linux. Groups are made below the one that this process is in, so a run
stays within whatever bounds the server itself. Both versions of the kernel's interface are spoken;
which one allows what is found out by making a group and joining it.
Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

import contextlib
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.sandbox.linux import write_text

PREFIX = "academy-run-"
_SERVER = "academy-server"
"""Where processes of the server go in version 2: a group with members bounds none below it."""
_LIMIT = "memory.limit_in_bytes"
_NEAR_BYTES = 2 << 20
"""How far below its bound a group may stand when no further huge page fits in."""
_CONTROLLERS = ("memory", "pids")
_REMOVE_TRIES, _REMOVE_PAUSE_S = 100, 0.01
_FOREIGN_AGE_S = 60.0
"""From then on a group of another pid namespace that has no member is nobody's any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """Where groups of runs can be made."""

    version: Literal[1, 2]
    folders: tuple[Path, ...]
    """The folder of the memory controller; in version 1 then that of pids, if that is writable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """The control group of one run; it bounds nothing before `bound` is called."""

    version: Literal[1, 2]
    folders: tuple[Path, ...]

    def join(self) -> None:
        """Move this process in, and with it all that it will fork. Raises: OSError."""
        for folder in self.folders:
            write_text(f"{folder}/cgroup.procs", "0")

    def bound(self, *, more_bytes: int, num_processes: int) -> None:
        """Allow this many bytes beyond what is held now, and this many processes and threads.

        Counted are private and shared memory, files of the scratch, and the kernel's own memory for
        sockets, pipes and page tables; swap is none. Raises: OSError.
        """
        held = int(self._read("memory.current", "memory.usage_in_bytes"))
        limit = str(held + more_bytes)
        if self.version == 2:
            self._write("memory.max", limit)
            self._write_if_there("memory.swap.max", "0")
            self._write_if_there("memory.oom.group", "1")
        else:
            self._write(_LIMIT, limit)
            self._write_if_there("memory.memsw.limit_in_bytes", limit)
            self._write_if_there("memory.kmem.tcp.limit_in_bytes", limit)
        if self.version == 2 or len(self.folders) > 1:
            write_text(f"{self.folders[-1]}/pids.max", str(num_processes))

    def has_killed(self) -> bool:
        """Whether the kernel killed a process of the run because the group was at its bound."""
        text = self._read("memory.events", "memory.oom_control")
        words = dict(line.split(maxsplit=1) for line in text.splitlines())
        if int(words.get("oom_kill", "0")) == 0:
            return False
        # A machine that is out of memory itself counts in oom_kill too.
        if self.version == 2:
            return int(words["oom"]) > 0
        # Not memory.failcnt, which recent kernels leave at 0.
        most, limit = self._read("", "memory.max_usage_in_bytes"), self._read("", _LIMIT)
        return int(most) + _NEAR_BYTES >= int(limit)

    def remove(self) -> None:
        """Take the group away, after its last process has ended; what is in use stays."""
        for folder in self.folders:
            for _ in range(_REMOVE_TRIES):
                if _remove(folder):
                    break
                time.sleep(_REMOVE_PAUSE_S)  # the kernel counts the dead a moment longer

    def _read(self, second: str, first: str) -> str:
        name = second if self.version == 2 else first
        return (self.folders[0] / name).read_text(encoding="ascii")

    def _write(self, name: str, text: str) -> None:
        write_text(f"{self.folders[0]}/{name}", text)

    def _write_if_there(self, name: str, text: str) -> None:
        """Kernels without swap, or without accounting of it, lack the file."""
        if (self.folders[0] / name).exists():
            self._write(name, text)


def find_place(root: Path = Path("/")) -> GroupPlace:
    """Where this process can make groups for runs. Raises: OSError with what the kernel refused.

    root is where proc and the controllers are looked up: another one than / is for tests.
    """
    paths = _own_paths(root)
    unified = paths.get("")
    if unified and "memory" in _words(unified / "cgroup.controllers"):
        place = GroupPlace(version=2, folders=(_with_controllers(unified),))
    elif memory := paths.get("memory"):
        pids = paths.get("pids")
        has_pids = pids is not None and os.access(pids, os.W_OK)
        folders = (memory, pids) if has_pids and pids else (memory,)
        place = GroupPlace(version=1, folders=folders)
    else:
        raise FileNotFoundError(errno.ENOENT, "no memory controller is mounted for this process")
    _try(place)
    return place


def make_group(place: GroupPlace) -> RunGroup:
    """A new group, named after this process, which makes one at a time. Raises: OSError."""
    name = f"{PREFIX}{_pid_namespace()}-{os.getpid()}-{_started_at(os.getpid())}"
    folders = tuple(folder / name for folder in place.folders)
    for folder in folders:
        folder.mkdir()
    return RunGroup(version=place.version, folders=folders)


def sweep(place: GroupPlace) -> int:
    """Remove what dead processes have left behind; returns how many groups that were.

    The name says who made a group. One of a living process or with members stays. Of another pid
    namespace, where that number means another process, only age tells: a group gets its members at
    once and keeps some until its end.
    """
    num_removed = 0
    for folder in place.folders:
        for path in folder.glob(f"{PREFIX}*"):
            namespace, pid, started_at = (*path.name.removeprefix(PREFIX).split("-"), "", "")[:3]
            if namespace == _pid_namespace() and pid.isdigit():
                is_left = _started_at(int(pid)) != started_at
            else:
                is_left = _age_s(path) > _FOREIGN_AGE_S
            num_removed += is_left and _remove(path)
    return num_removed


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_ctime
    except FileNotFoundError:
        return 0.0


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _own_paths(root: Path) -> dict[str, Path]:
    """The folder of this process's group per controller; "" is version 2's single one."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in (root / "proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        inner, target = before.split()[3:5]
        kind, _, options = after.split(maxsplit=2)
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            mounts.setdefault(name, (inner, target))
    found: dict[str, Path] = {}
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            inner, target = mounts.get(name, ("", ""))
            if target and path.startswith(inner):
                below = path.removeprefix(inner).lstrip("/")
                found[name] = root / target.lstrip("/") / below
    return found


def _with_controllers(own: Path) -> Path:
    """The folder of version 2 below which memory and pids can be bounded. Raises: OSError."""
    folder = own.parent if own.name == _SERVER else own
    if not set(_CONTROLLERS) <= set(_words(folder / "cgroup.subtree_control")):
        if folder == own:
            _make_room(folder)
        wanted = " ".join(f"+{name}" for name in _CONTROLLERS)
        write_text(f"{folder}/cgroup.subtree_control", wanted)
    return folder


def _make_room(folder: Path) -> None:
    """Move the server's own processes into a group beside those of the runs. Raises: OSError."""
    members = [int(word) for word in _words(folder / "cgroup.procs")]
    executor = os.getppid()
    if not all(_descends(member, executor) for member in members):
        raise OSError(errno.EBUSY, "other processes than the academy's share its control group")
    (folder / _SERVER).mkdir(exist_ok=True)
    for member in members:
        with contextlib.suppress(ProcessLookupError):
            write_text(f"{folder}/{_SERVER}/cgroup.procs", str(member))


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        pid = int((_stat(pid) or ["", "0"])[1])
    return pid == ancestor


def _try(place: GroupPlace) -> None:
    """Make a group, bound it, let a child join it. Raises: OSError with what was refused."""
    group = make_group(place)
    try:
        group.bound(more_bytes=1 << 30, num_processes=64)
        group.has_killed()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                group.join()
                os.write(write, b"0")
            except OSError as error:
                os.write(write, str(error.errno).encode())
            finally:
                os._exit(0)
        os.close(write)
        said = int(os.read(read, 16) or b"0")
        os.close(read)
        os.waitpid(child, 0)
        if said:
            raise OSError(said, f"joining a control group: {os.strerror(said)}")
    finally:
        group.remove()


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _started_at(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None when there is no such process."""
    fields = _stat(pid)
    return fields[19] if fields else None


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: state, parent and so on."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
