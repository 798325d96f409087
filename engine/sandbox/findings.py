"""What a probe found, and the line that lets a failed one pass. Standard library only.

Which switch is in the way is read from the kernel's settings; whether anything is in the way at
all is what the probe itself found out.
"""

import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ProbeName = Literal[
    "platform",
    "user-namespace",
    "id-map",
    "pid-namespace",
    "mount-namespace",
    "network-namespace",
    "ipc-namespace",
    "pivot-root",
    "proc",
    "loopback",
    "seccomp",
    "landlock",
    "pidfd",
    "memory-cgroup",
    "pids-cgroup",
    "bubblewrap",
    "walls",
    "fence",
    "fortress",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What came of one attempt."""

    name: ProbeName
    is_ok: bool
    errno: str | None = None
    """The kernel's name of the error, EPERM say; None where it was none of the kernel's."""
    detail: str | None = None
    """What was found, or the step that failed."""
    fix: str | None = None
    """The line that changes it, where it failed."""


PLATFORM_FIX = "Host the academy on Linux, x86_64 or aarch64; in a virtual machine, say."
DOCTOR_FIX = "Run `academy doctor` on the server to see what is missing, or allow a weaker tier."
OWN_GROUPS_FIX = "Run the academy as root: only root can make control groups here."
CONTAINER = (
    "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
    "--security-opt systempaths=unconfined ..."
)
_SWITCHES = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
_COUNTED = {
    "pid-namespace": "pid",
    "mount-namespace": "mnt",
    "network-namespace": "net",
    "ipc-namespace": "ipc",
}
_OF_NAMESPACES = (*_COUNTED, "user-namespace", "id-map", "pivot-root", "loopback", "walls")
_FIXES: dict[str, str] = {
    "platform": PLATFORM_FIX,
    "seccomp": "Boot a kernel with CONFIG_SECCOMP_FILTER=y.",
    "landlock": "Boot Linux 6.12 or newer with landlock in the kernel's parameter lsm=.",
    "pidfd": "Boot Linux 5.12 or newer.",
    "bubblewrap": "apt-get install bubblewrap",
    "memory-cgroup": "systemd-run --user --scope -p Delegate=yes academy serve",
    "pids-cgroup": "systemd-run --user --scope -p Delegate=yes academy serve",
    "fortress": "apt-get install bubblewrap",
    "fence": "Boot Linux 6.7 or newer (6.12 is better) with landlock in the parameter lsm=.",
}
_ROOT_CGROUP_FIX = "systemd-run --scope -p Delegate=yes academy serve"


def fix_of(name: ProbeName, number: int) -> str:
    """What to change so that this probe passes; `number` is the errno, 0 for none."""
    if name in _OF_NAMESPACES or (name == "bubblewrap" and shutil.which("bwrap")):
        return _namespace_fix(name, number)
    if name == "proc":
        return f"sysctl -w {_blocking()[0]}" if _blocking() else f"Unmask /proc: {CONTAINER}"
    if name.endswith("-cgroup") and os.geteuid() == 0:
        return _ROOT_CGROUP_FIX
    if name.endswith("-cgroup") and not _has_systemd_with_version_2():
        return OWN_GROUPS_FIX
    if name in ("seccomp", "landlock") and is_container() and number == errno.EPERM:
        return CONTAINER
    return _FIXES[name]


def _has_systemd_with_version_2() -> bool:
    """Whether a user's systemd could hand control groups to the server."""
    is_unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return is_unified and Path("/run/systemd/system").is_dir()


def _namespace_fix(name: ProbeName, number: int) -> str:
    blocking = _blocking()
    if blocking:
        return " && ".join(f"sysctl -w {setting}" for setting in blocking)
    if number in (errno.EINVAL, errno.ENOSYS) and name != "pivot-root":
        return "Boot a kernel with CONFIG_NAMESPACES=y and CONFIG_USER_NS=y."
    if number == errno.ENOSPC:
        counted = _COUNTED.get(name, "user")
        return f"sysctl -w user.max_{counted}_namespaces=10000"
    if is_container():
        return CONTAINER
    return (
        "Start the academy outside of what restricts it: a chroot, a container, a service with "
        "RestrictNamespaces=, or a security module (see `journalctl -k -g denied`)."
    )


def _blocking() -> list[str]:
    """Settings that forbid user namespaces here. Root is exempt from none that is zero."""
    found: list[str] = []
    for path, value, setting in _SWITCHES:
        try:
            is_blocking = Path(path).read_text(encoding="ascii").strip() == value
        except OSError:  # this kernel has no such switch
            continue
        if is_blocking:
            found.append(setting)
    return found


def is_container() -> bool:
    """Whether this looks like the inside of a container: only for the choice of words."""
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    try:
        text = Path("/proc/1/cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return any(word in text for word in ("docker", "kubepods", "containerd", "lxc", "podman"))
