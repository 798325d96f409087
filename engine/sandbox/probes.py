"""Single things that isolation needs, each found out by doing it in a forked child. Linux only.

May import the rest of engine.sandbox. No sysctl decides anything here: remedies read them, to name
the one that is in the way.
"""

import errno
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.sandbox import landlock, linux
from engine.sandbox.findings import Probe, ProbeName, fix_of
from engine.sandbox.launch import learner_map, map_ids_of
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of

_PATIENCE_S = 10
_NEW_ROOT = "/mnt"


class Missing(Exception):
    """An attempt that failed without an error of the kernel's; says what is missing."""


def probe_all() -> tuple[Probe, ...]:
    """Every probe, in the order in which a sandbox needs them."""
    return tuple(attempt(name, action) for name, action in _ACTIONS)


def attempt(name: ProbeName, action: Callable[[], str]) -> Probe:
    """Do it in a child; what it returns is the detail, what it raises the reason."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            signal.alarm(_PATIENCE_S)  # a child that hangs is a failed attempt
            os.write(write, _said_by(action).encode()[:2000])
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    os.waitpid(child, 0)
    status, _, rest = said.partition("|")
    if status == "ok":
        return Probe(name=name, is_ok=True, detail=rest or None)
    number = int(status) if status.isdigit() else 0
    why = rest or "the attempt died or hung"
    return Probe(
        name=name,
        is_ok=False,
        errno=errno.errorcode.get(number),
        detail=why,
        fix=fix_of(name, number),
    )


def _said_by(action: Callable[[], str]) -> str:
    try:
        return f"ok|{action()}"
    except OSError as error:
        return f"{error.errno or 0}|{error.strerror or error}"
    except Missing as error:
        return f"-|{error}"


# ------------------------------------------------------------------ namespaces
def _enter(flags: int) -> None:
    """New namespaces of one's own, as their root."""
    ids = (os.geteuid(), os.getegid())
    linux.unshare(linux.CLONE_NEWUSER | flags)
    linux.write_text("/proc/self/setgroups", "deny")
    linux.write_text("/proc/self/uid_map", f"0 {ids[0]} 1")
    linux.write_text("/proc/self/gid_map", f"0 {ids[1]} 1")


def _user_namespace() -> str:
    linux.unshare(linux.CLONE_NEWUSER)
    return ""


def _id_map() -> str:
    """As a launch does: root maps two ids from outside, another user its own."""
    if os.geteuid() != 0:
        _enter(0)
        return "own id"
    unshared, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(unshared[1], _said_by(_user_namespace).encode())
            os.close(mapped[1])
            os.read(mapped[0], 1)
        finally:
            os._exit(0)
    os.close(unshared[1])
    _take(os.read(unshared[0], 1500))
    map_ids_of(child)
    os.close(mapped[1])
    return f"from outside: {learner_map().splitlines()[-1]}"


def _namespace(flag: int) -> Callable[[], str]:
    def make() -> str:
        _enter(flag)
        return ""

    return make


def _pid_namespace() -> str:
    _enter(linux.CLONE_NEWPID)
    return in_child(lambda: "" if os.getpid() == 1 else _raise("its first process is not pid 1"))


def in_child(action: Callable[[], str]) -> str:
    """What an action says in a further child: a new pid namespace begins with the next fork."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.write(write, _said_by(action).encode()[:1500])
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return _take(said)


def _take(said: bytes) -> str:
    """What a further child found out. Raises: OSError, Missing."""
    status, _, rest = said.decode("utf-8", "replace").partition("|")
    if status == "ok":
        return rest
    if status.isdigit():
        raise OSError(int(status), rest)
    raise Missing(rest or "the child died")


def _raise(why: str) -> str:
    raise Missing(why)


def _private_root() -> None:
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", _NEW_ROOT, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=64k")


def _pivot_root() -> str:
    _enter(linux.CLONE_NEWNS)
    _private_root()
    Path(_NEW_ROOT, "old").mkdir()
    os.chdir(_NEW_ROOT)
    linux.pivot_root(".", "old")
    os.chdir("/")
    linux.unmount("/old")
    return ""


def _proc() -> str:
    _enter(linux.CLONE_NEWNS | linux.CLONE_NEWPID)

    def mount() -> str:
        _private_root()
        linux.mount("proc", _NEW_ROOT, "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        return ""

    return in_child(mount)


def _loopback() -> str:
    _enter(linux.CLONE_NEWNET)
    linux.loopback_up()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
    return ""


# ------------------------------------------------------------------ the other layers
def _seccomp() -> str:
    machine = machine_of(os.uname().machine)
    if machine is None:
        raise Missing(f"no table of system calls for {os.uname().machine}")
    linux.set_no_new_privs()
    linux.load_seccomp(build_filter(machine))
    try:
        os.memfd_create("probe")
    except PermissionError:
        return machine
    raise Missing("the filter was taken, and lets everything pass")


def _landlock() -> str:
    version = landlock.abi()
    if not version:
        raise OSError(errno.EOPNOTSUPP, "this kernel has no Landlock, or it is off at boot")
    linux.set_no_new_privs()
    landlock.restrict(read_only=("/usr",), read_write=(), devices=())
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return f"ABI {version}"
    raise Missing("a path that was not allowed could be opened")


def _pidfd() -> str:
    descriptor = os.pidfd_open(os.getpid())
    signal.pidfd_send_signal(descriptor, 0)
    return ""


def _bubblewrap() -> str:
    path = shutil.which("bwrap")
    if path is None:
        raise Missing("bwrap is not installed")
    command = [path, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    done = subprocess.run(  # noqa: S603 - a fixed command
        [*command, "--die-with-parent", "true"],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Missing((done.stderr.splitlines() or ["bwrap fails"])[0][:300])
    return path


# ------------------------------------------------------------------ control groups
def _cgroup(controller: str, limit_files: Mapping[int, str]) -> Callable[[], str]:
    def make() -> str:
        parent, version = _own_cgroup(controller)
        folder = parent / f"academy-probe-{os.getpid()}"
        folder.mkdir()
        try:
            if version == 2 and controller not in _words(folder / "cgroup.controllers"):
                raise Missing(f"{controller} is not delegated to {parent}")
            (folder / limit_files[version]).write_text("1000000", encoding="ascii")
        finally:
            folder.rmdir()
        return f"v{version} {parent}"

    return make


def _own_cgroup(controller: str) -> tuple[Path, int]:
    """The folder below which this process could make a group with that controller."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return _existing(Path("/sys/fs/cgroup", controller), path), 1
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        raise Missing(f"no hierarchy with the controller {controller} is mounted")
    return _existing(Path("/sys/fs/cgroup"), _unified_path()), 2


def _unified_path() -> str:
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return "/"


def _existing(mounted: Path, path: str) -> Path:
    """In a container the path may be told from the host's root, which is mounted nowhere."""
    inner = mounted / path.lstrip("/")
    return inner if inner.is_dir() else mounted


def _words(path: Path) -> list[str]:
    return path.read_text(encoding="ascii").split()


_ACTIONS: tuple[tuple[ProbeName, Callable[[], str]], ...] = (
    ("user-namespace", _user_namespace),
    ("id-map", _id_map),
    ("pid-namespace", _pid_namespace),
    ("mount-namespace", _namespace(linux.CLONE_NEWNS)),
    ("network-namespace", _namespace(linux.CLONE_NEWNET)),
    ("ipc-namespace", _namespace(linux.CLONE_NEWIPC)),
    ("pivot-root", _pivot_root),
    ("proc", _proc),
    ("loopback", _loopback),
    ("seccomp", _seccomp),
    ("landlock", _landlock),
    ("pidfd", _pidfd),
    ("memory-cgroup", _cgroup("memory", {1: "memory.limit_in_bytes", 2: "memory.max"})),
    ("pids-cgroup", _cgroup("pids", {1: "pids.max", 2: "pids.max"})),
    ("bubblewrap", _bubblewrap),
)
