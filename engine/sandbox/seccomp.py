"""The system call filter: an allow-list as a BPF program. May import engine.sandbox.syscalls.

Policy: what is listed is allowed; clone3 and io_uring answer ENOSYS, so that libraries fall back;
foreign call conventions (int80, x32) kill; anything newer than the table answers ENOSYS and
everything else EPERM. Some calls are judged by their arguments.
"""

import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from engine.sandbox.syscalls import Machine, numbers

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE_OR_EQUAL, _JUMP_SET, _AND, _RETURN = (
    0x20,
    0x15,
    0x35,
    0x45,
    0x54,
    0x06,
)
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_KILL = 0x80000000
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
EPERM = _ERRNO | errno.EPERM
ENOSYS = _ERRNO | errno.ENOSYS

_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENTS = 0, 4, 16
_NAMESPACE_FLAGS = 0x7E020000 | 0x80
_FAMILIES = (1, 2, 10)  # unix, inet, inet6
_AF_NETLINK, _NETLINK_ROUTE = 16, 0
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_MAP_SHARED_ANONYMOUS = 0x21
_F_SETPIPE_SZ = 1031
_PR_SET_NAME = 15

_FALL_BACK = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")

_ALLOWED = """
accept accept4 access alarm arch_prctl bind brk capget chdir chmod chown clock_getres
clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3
epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve
exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown
fchownat fcntl fdatasync fgetxattr flistxattr flock fork fstat fstatfs fsync ftruncate futex
futex_requeue futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list getcpu
getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp
getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1
inotify_rm_watch kill lchown lgetxattr link linkat listen listxattr llistxattr lseek lstat madvise
membarrier mincore mkdir mkdirat mknodat mlock mlock2 mprotect mremap msync munlock munmap
nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2
pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 pselect6 pwrite64
pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg rename
renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield select sendfile sendmmsg sendmsg sendto set_robust_list
set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid
setresgid setresuid setreuid setrlimit setsid setsockopt setuid shutdown sigaltstack signalfd
signalfd4 socketpair splice stat statfs statx symlink symlinkat sync sync_file_range sysinfo tee
tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat
utimes vfork wait4 waitid write writev
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A call that is judged by one argument's lower 32 bits; `body` ends in returns."""

    name: str
    body: bytes


def _statement(code: int, value: int) -> bytes:
    return struct.pack("HBBI", code, 0, 0, value & 0xFFFFFFFF)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def _load_argument(index: int) -> bytes:
    return _statement(_LOAD, _OFFSET_ARGUMENTS + 8 * index)


def _return(value: int) -> bytes:
    return _statement(_RETURN, value)


def _only_if(code: int, value: int) -> bytes:
    """Allow when the comparison holds, else EPERM."""
    return _jump(code, value, 0, 1) + _return(_ALLOW) + _return(EPERM)


def _unless(code: int, value: int) -> bytes:
    """EPERM when the comparison holds, else allow."""
    return _jump(code, value, 0, 1) + _return(EPERM) + _return(_ALLOW)


def _refuse_values(values: Sequence[int]) -> bytes:
    tests = b"".join(_jump(_JUMP_EQUAL, v, 0, 1) + _return(EPERM) for v in values)
    return tests + _return(_ALLOW)


def _judged(*, for_gpus: bool) -> list[_Judged]:
    families = b"".join(_jump(_JUMP_EQUAL, f, 0, 1) + _return(_ALLOW) for f in _FAMILIES)
    netlink = (
        _jump(_JUMP_EQUAL, _AF_NETLINK, 1, 0)
        + _return(EPERM)
        + _load_argument(2)
        + _only_if(_JUMP_EQUAL, _NETLINK_ROUTE)
    )
    shared = _statement(_AND, _MAP_SHARED_ANONYMOUS) + _unless(
        _JUMP_EQUAL, _MAP_SHARED_ANONYMOUS
    )  # shared anonymous memory would escape RLIMIT_DATA
    if for_gpus:
        shared = _return(_ALLOW)  # CUDA's own host memory is of this kind
    return [
        _Judged(name="clone", body=_load_argument(0) + _unless(_JUMP_SET, _NAMESPACE_FLAGS)),
        _Judged(name="socket", body=_load_argument(0) + families + netlink),
        _Judged(name="ioctl", body=_load_argument(1) + _refuse_values((_TIOCSTI, _TIOCLINUX))),
        _Judged(name="fcntl", body=_load_argument(1) + _refuse_values((_F_SETPIPE_SZ,))),
        # The name tells the supervisor which processes still share the zygote's memory.
        _Judged(name="prctl", body=_load_argument(0) + _refuse_values((_PR_SET_NAME,))),
        _Judged(name="prlimit64", body=_load_argument(0) + _only_if(_JUMP_EQUAL, 0)),
        _Judged(name="mmap", body=_load_argument(3) + shared),
    ]


def build_filter(machine: Machine, *, for_gpus: bool = False) -> bytes:
    """The BPF program for one architecture, 8 bytes per instruction.

    For ranks on GPUs it lets shared anonymous memory pass: that is bounded by the supervisor's
    reading of what the ranks hold, twenty times a second, and by no rlimit.

    Source: Linux, Documentation/userspace-api/seccomp_filter.rst.
    """
    table = numbers(machine)
    parts = [
        _statement(_LOAD, _OFFSET_ARCH),
        _jump(_JUMP_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _return(_KILL),
        _statement(_LOAD, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        parts.append(_jump(_JUMP_ABOVE_OR_EQUAL, _X32_BIT, 0, 1) + _return(_KILL))
    for judged in _judged(for_gpus=for_gpus):
        length = len(judged.body) // 8
        parts.append(_jump(_JUMP_EQUAL, table[judged.name], 0, length) + judged.body)
    for name in _ALLOWED.split():
        if name in table:
            parts.append(_jump(_JUMP_EQUAL, table[name], 0, 1) + _return(_ALLOW))
    for name in _FALL_BACK:
        parts.append(_jump(_JUMP_EQUAL, table[name], 0, 1) + _return(ENOSYS))
    newest = max(table.values())
    parts.append(_jump(_JUMP_ABOVE_OR_EQUAL, newest + 1, 0, 1) + _return(ENOSYS) + _return(EPERM))
    return b"".join(parts)
