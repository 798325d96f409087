"""The curated root of a run: what a rank can see. May import engine.sandbox.linux and gpus.

Built by the run's init, inside its own mount namespace: a small tmpfs, read-only binds of the
system's and Python's folders, five device nodes, a proc of this run only, and one scratch tmpfs
that bounds /work, /tmp and /dev/shm together.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.sandbox import gpus
from engine.sandbox.choice import Layer
from engine.sandbox.linux import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    pivot_root,
    set_read_only,
    unmount,
)

LEARNER_ID = 1000
"""User and group id of ranks inside their user namespace."""
WORK = "/work"
SCRATCH = (WORK, "/tmp", "/dev/shm")  # noqa: S108 - paths inside the run's own root
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not /dev/zero: mapping it shared is shared anonymous memory, which no rlimit counts."""

_NEW_ROOT = "/mnt"
SYSTEM_LINKS = ("/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin")
_FILES = {
    "/etc/passwd": f"learner:x:{LEARNER_ID}:{LEARNER_ID}::{WORK}:/bin/sh\n",
    "/etc/group": f"learner:x:{LEARNER_ID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_STANDARD_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RootPlan:
    """What of the host is visible, read-only, and what of that is covered up again."""

    binds: tuple[str, ...]
    covered: tuple[str, ...]
    scratch_bytes: int
    scratch_inodes: int
    gpu_nodes: tuple[str, ...] = ()
    """Device files of the GPUs that the ranks reach and of their driver; empty on CPU."""


def plan_root(*, scratch_bytes: int, scratch_inodes: int) -> RootPlan:
    """The plan for this interpreter: /usr, the base prefix, the environment and its packages.

    The app's own folder is covered where it is installed as a package: it holds lessons' keys.
    """
    found = {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix)}
    found |= {os.path.realpath(p) for p in sys.path if "-packages" in p and Path(p).is_dir()}
    found = {p for p in found if p not in ("/", "/usr") and not p.startswith("/usr/")}
    outermost = {p for p in found if not any(p.startswith(q + "/") for q in found)}
    covered = [str(Path(p) / "app") for p in sys.path if "-packages" in p]
    return RootPlan(
        binds=("/usr", *sorted(outermost)),
        covered=tuple(p for p in covered if Path(p).is_dir()),
        scratch_bytes=scratch_bytes,
        scratch_inodes=scratch_inodes,
    )


def readable_paths(plan: RootPlan) -> tuple[str, ...]:
    """Everything that ranks may read, for Landlock."""
    system = ("/etc", "/proc", "/dev", *SYSTEM_LINKS)
    return (*plan.binds, *system, *(gpus.readable_paths() if plan.gpu_nodes else ()))


def build_root(plan: RootPlan, without: frozenset[Layer] = frozenset()) -> None:
    """Build the root and move into it; needs capabilities in this user namespace.

    Without the layer `root`, the host's own tree stays reachable below /.old, and what is in
    scratch can be executed.
    """
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", _NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=2048,mode=755")
    for folder in ("/usr", "/proc", "/dev", "/etc", "/.old"):
        _make_folder(folder)
    for link in SYSTEM_LINKS:
        if Path(link).is_symlink():
            Path(_NEW_ROOT + link).symlink_to(Path(link).readlink())
        elif Path(link).is_dir():
            _bind(link)
    for path, text in _FILES.items():
        Path(_NEW_ROOT + path).write_text(text, encoding="ascii")
    _make_devices()
    _make_scratch(plan, 0 if "root" in without else MS_NOEXEC)
    for path in plan.binds:  # after scratch: an environment may lie below /tmp or /work
        _bind(path)
    for path in plan.covered:
        mount("tmpfs", _NEW_ROOT + path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k")
    if "pid" in without:
        mount("/proc", _NEW_ROOT + "/proc", None, MS_BIND | MS_REC)  # no other one can be made
    else:
        _mount_proc(plan)
    _enter(keeps_old="root" in without)


def _mount_proc(plan: RootPlan) -> None:
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    if plan.gpu_nodes:
        mount("proc", _NEW_ROOT + "/proc", "proc", flags | MS_RDONLY, "hidepid=2")
        _add_gpus(plan.gpu_nodes)
    else:
        mount("proc", _NEW_ROOT + "/proc", "proc", flags, "hidepid=2,subset=pid")


def _add_gpus(nodes: tuple[str, ...]) -> None:
    """Add what CUDA needs of the host, and cover what a whole proc shows beyond that."""
    for path in nodes:
        _make_folder(str(Path(path).parent))
        _bind_file(path)
    for path in gpus.readable_paths():
        if Path(path).is_dir():
            _bind(path)
        else:
            _bind_file(path)
            set_read_only(_NEW_ROOT + path)
    for path in gpus.COVERED:
        if Path(path).is_dir():
            mount("tmpfs", _NEW_ROOT + path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k")
        elif Path(path).exists():
            mount("/dev/null", _NEW_ROOT + path, None, MS_BIND)


def _make_folder(path: str, mode: int = 0o755) -> None:
    """Make a folder and its parents in the new root; parents can be passed but not listed."""
    for parent in reversed(Path(path).parents):
        target = Path(_NEW_ROOT + str(parent))
        if not target.exists():
            target.mkdir(mode=0o711)
            target.chmod(0o711)
    target = Path(_NEW_ROOT + path)
    if not target.exists():
        target.mkdir()
        target.chmod(mode)


def _bind(path: str) -> None:
    _make_folder(path)
    mount(path, _NEW_ROOT + path, None, MS_BIND | MS_REC)
    set_read_only(_NEW_ROOT + path)


def _bind_file(path: str) -> None:
    os.close(os.open(_NEW_ROOT + path, os.O_CREAT | os.O_WRONLY, 0o666))
    mount(path, _NEW_ROOT + path, None, MS_BIND)


def _make_devices() -> None:
    for path in DEVICES:
        _bind_file(path)
    for link, target in _STANDARD_LINKS.items():
        Path(_NEW_ROOT + link).symlink_to(target)


def _make_scratch(plan: RootPlan, no_exec: int) -> None:
    """One tmpfs, bound three times, so that one size bounds all that a run can write."""
    _make_folder("/.scratch")
    options = f"size={plan.scratch_bytes},nr_inodes={plan.scratch_inodes},mode=755"
    flags = MS_NOSUID | MS_NODEV | no_exec
    mount("tmpfs", _NEW_ROOT + "/.scratch", "tmpfs", flags, options)
    for number, path in enumerate(SCRATCH):
        inner = Path(f"{_NEW_ROOT}/.scratch/{number}")
        inner.mkdir()
        os.chown(inner, LEARNER_ID, LEARNER_ID)
        inner.chmod(0o755 if path == WORK else 0o1777)
        _make_folder(path)
        mount(str(inner), _NEW_ROOT + path, None, MS_BIND)
    unmount(_NEW_ROOT + "/.scratch")
    Path(_NEW_ROOT + "/.scratch").rmdir()


def _enter(*, keeps_old: bool) -> None:
    os.chdir(_NEW_ROOT)
    pivot_root(".", ".old")
    os.chdir("/")
    if not keeps_old:
        unmount("/.old")
        Path("/.old").rmdir()
    mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
