"""System calls that the standard library lacks, through ctypes. Standard library only.

Every function raises OSError with the kernel's errno and the name of the call.
"""

import ctypes
import fcntl
import functools
import os
import socket
import struct
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

IMAGE_NAME = "academy/rank"
"""Name of the zygote and its forks. No executed file can have it: a file's name has no slash."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAP_VERSION_3 = 0x20080522
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY_NOSUID_NODEV = 1 | 2 | 4
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x41

# The same on every architecture that uses the generic table or x86_64's.
_SYS = {
    "x86_64": {"pivot_root": 155, "capset": 126, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "capset": 91, "seccomp": 277},
}
_SYS_MOUNT_SETATTR = 442


@functools.cache  # each one is a class of its own: ranks would make fifty of them as they start
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """The result of a C call. Raises: OSError when it is negative."""
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")
    return result


def syscall(number: int, what: str, *arguments: object) -> int:
    """Call the kernel directly. Raises: OSError."""
    return check(_libc().syscall(ctypes.c_long(number), *arguments), what)


def _by_name(name: str) -> int:
    return _SYS[os.uname().machine][name]


def unshare(flags: int) -> None:
    check(_libc().unshare(ctypes.c_int(flags)), "unshare")


def mount(
    source: str | None, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    result = _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    check(result, f"mount {kind or source or ''} on {target}")


def unmount(target: str) -> None:
    """Detach a mount with what lies below it."""
    check(_libc().umount2(target.encode(), MNT_DETACH), f"umount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    syscall(_by_name("pivot_root"), "pivot_root", new_root.encode(), put_old.encode())


def set_read_only(target: str) -> None:
    """Make a mount and all mounts below it read-only, nosuid, nodev."""
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY_NOSUID_NODEV, 0, 0, 0)
    syscall(
        _SYS_MOUNT_SETATTR,
        f"mount_setattr {target}",
        ctypes.c_int(_AT_FDCWD),
        target.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )


def _prctl(what: str, *arguments: int) -> int:
    padded = (list(arguments) + [0] * 5)[:5]
    return check(_libc().prctl(*[ctypes.c_ulong(value) for value in padded]), what)


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send a signal when the parent dies; a change of uid clears it."""
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal_number)


def take_image_name() -> None:
    """Name this process, and so all that it forks, as one that shares the zygote's memory."""
    name = ctypes.create_string_buffer(IMAGE_NAME.encode())
    check(_libc().prctl(_PR_SET_NAME, name, 0, 0, 0), "PR_SET_NAME")


def become_subreaper() -> None:
    """Adopt orphaned descendants, so that their end can be awaited and counted."""
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(*, value: bool) -> None:
    """Allow or refuse ptrace and /proc access by processes of the same user."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, int(value))


def set_no_new_privs() -> None:
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_set() -> None:
    """Make sure that no executed file can give capabilities back."""
    libc = _libc()
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # either past the last capability, or there is no right to drop it


def drop_capabilities() -> None:
    """Give up all capabilities for good: ambient, effective, permitted, inheritable."""
    libc = _libc()
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("II", _CAP_VERSION_3, 0)
    syscall(_by_name("capset"), "capset", header, b"\0" * 24)


def loopback_up() -> None:
    """Bring up `lo` in this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP_RUNNING))


def load_seccomp(program: bytes, *, on_every_thread: bool = False) -> None:
    """Install a BPF program of 8-byte instructions as this thread's seccomp filter.

    Or as every thread's of this process, those included that are there already.
    """
    buffer = ctypes.create_string_buffer(program, len(program))

    class SockFprog(ctypes.Structure):
        _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    filter_program = SockFprog(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    seccomp_set_mode_filter, filter_flag_tsync = 1, 1
    refused_by = syscall(
        _by_name("seccomp"),
        "seccomp",
        ctypes.c_uint(seccomp_set_mode_filter),
        ctypes.c_uint(filter_flag_tsync if on_every_thread else 0),
        ctypes.byref(filter_program),
    )
    if refused_by:
        raise OSError(f"seccomp: thread {refused_by} has a filter of its own")


def write_text(path: str, text: str) -> None:
    """Write a kernel file in one call, as uid_map and its like demand."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def children_of(pid: int) -> list[int]:
    """Direct children of a process, whichever thread forked them; empty when it is gone."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(p) for p in (task / "children").read_text().split()]
    except (OSError, ValueError):
        return found
    return found


def living_task(pid: int) -> str:
    """The /proc folder that shows what a process holds; that of its first thread, if that goes on.

    A thread that has ended shows nothing, although the process goes on with the others.
    """
    whole = f"/proc/{pid}"
    try:
        for task in sorted(os.listdir(f"{whole}/task"), key=int):
            if _state(f"{whole}/task/{task}") not in "ZX":
                return whole if task == str(pid) else f"{whole}/task/{task}"
    except OSError:  # it is gone
        return whole
    return whole


def _state(task: str) -> str:
    try:
        text = Path(f"{task}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X"
    return text.rpartition(")")[2].split()[0]
