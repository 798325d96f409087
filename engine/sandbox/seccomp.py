"""The system call filter: an allow-list as a BPF program. May import engine.sandbox.syscalls.

Policy: what is listed is allowed; clone3 and io_uring answer ENOSYS, so that libraries fall back;
foreign call conventions (int80, x32) kill; anything newer than the table answers ENOSYS and
everything else EPERM. Some calls are judged by their arguments.
"""

import errno
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.sandbox.syscalls import Machine, numbers

_LOAD, JUMP_EQUAL, _JUMP_ABOVE_OR_EQUAL, JUMP_SET, _AND, _RETURN = (
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
ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
EPERM = _ERRNO | errno.EPERM
ENOSYS = _ERRNO | errno.ENOSYS
NO_SOCKETS = _ERRNO | errno.EAFNOSUPPORT

_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENTS = 0, 4, 16
NAMESPACE_FLAGS = 0x7E020000 | 0x80
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_AF_NETLINK, _NETLINK_ROUTE = 16, 0
_TYPES, _SOCK_RAW = 0xF, 3
"""Only netlink's sockets are raw; the other bits of a socket's type are flags."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_MAP_SHARED_ANONYMOUS = 0x21
_MAP_GROWSDOWN = 0x100
_F_SETPIPE_SZ = 1031
_PR_SET_DUMPABLE, _PR_SET_NAME = 4, 15

_FALL_BACK = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")

ALLOWED = """
accept accept4 access alarm arch_prctl bind brk capget chdir chmod chown clock_getres clock_gettime
clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve exit exit_group
faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl
fdatasync fgetxattr flistxattr flock fork fstat fstatfs fsync ftruncate futex futex_requeue
futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list getcpu getcwd getdents
getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid
getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid
gettimeofday getuid getxattr kill lchown lgetxattr link linkat listen listxattr llistxattr lseek
lstat madvise membarrier mincore mkdir mkdirat mknodat mlock mlock2 mprotect mremap msync munlock
munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2
pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 pselect6 pwrite64 pwritev
pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg rename renameat
renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield
select sendfile sendmmsg sendmsg sendto set_robust_list set_tid_address setfsgid setfsuid setgid
setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsockopt
setuid shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statx symlink symlinkat
sync sync_file_range sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate
umask uname unlink unlinkat utime utimensat utimes vfork wait4 waitid write writev
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A call that is judged by one argument's lower 32 bits; `body` ends in returns."""

    name: str
    body: bytes


def statement(code: int, value: int) -> bytes:
    """One instruction without jumps."""
    return struct.pack("HBBI", code, 0, 0, value & 0xFFFFFFFF)


def jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    """Go on so many instructions further, depending on a comparison."""
    return struct.pack("HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def load_argument(index: int) -> bytes:
    """Look at the lower 32 bits of one argument from here on."""
    return statement(_LOAD, _OFFSET_ARGUMENTS + 8 * index)


def returning(value: int) -> bytes:
    """The filter's answer."""
    return statement(_RETURN, value)


def only_if(code: int, value: int) -> bytes:
    """Allow when the comparison holds, else EPERM."""
    return jump(code, value, 0, 1) + returning(ALLOW) + returning(EPERM)


def unless(code: int, value: int) -> bytes:
    """EPERM when the comparison holds, else allow."""
    return jump(code, value, 0, 1) + returning(EPERM) + returning(ALLOW)


def refuse_values(values: Sequence[int]) -> bytes:
    """EPERM for these values, else allow."""
    tests = b"".join(jump(JUMP_EQUAL, v, 0, 1) + returning(EPERM) for v in values)
    return tests + returning(ALLOW)


def _judged_socket() -> bytes:
    """Streams and datagrams of three families, and netlink's routes, which getifaddrs asks for."""
    raw = load_argument(0) + b"".join(
        jump(JUMP_EQUAL, f, 0, 1) + returning(EPERM) for f in (_AF_INET, _AF_INET6)
    )
    kinds = load_argument(1) + statement(_AND, _TYPES)
    kinds += jump(JUMP_EQUAL, _SOCK_RAW, 0, len(raw) // 8) + raw
    families = b"".join(
        jump(JUMP_EQUAL, f, 0, 1) + returning(ALLOW) for f in (_AF_UNIX, _AF_INET, _AF_INET6)
    )
    netlink = (
        jump(JUMP_EQUAL, _AF_NETLINK, 1, 0)
        + returning(EPERM)
        + load_argument(2)
        + only_if(JUMP_EQUAL, _NETLINK_ROUTE)
    )
    return kinds + load_argument(0) + families + netlink


def judged_calls(*, for_gpus: bool) -> list[Judged]:
    """The calls whose arguments decide, within walls."""
    shared = statement(_AND, _MAP_SHARED_ANONYMOUS) + unless(
        JUMP_EQUAL, _MAP_SHARED_ANONYMOUS
    )  # shared anonymous memory would escape RLIMIT_DATA
    if for_gpus:
        shared = returning(ALLOW)  # CUDA's own host memory is of this kind
    # A mapping that grows like a stack would too.
    grows = jump(JUMP_SET, _MAP_GROWSDOWN, 0, 1) + returning(EPERM)
    return [
        Judged(name="clone", body=load_argument(0) + unless(JUMP_SET, NAMESPACE_FLAGS)),
        Judged(name="socket", body=_judged_socket()),
        Judged(name="ioctl", body=load_argument(1) + refuse_values((_TIOCSTI, _TIOCLINUX))),
        Judged(name="fcntl", body=load_argument(1) + refuse_values((_F_SETPIPE_SZ,))),
        # The name tells the supervisor which processes still share the zygote's memory. What is
        # not dumpable keeps its peers out of its memory and descriptors.
        Judged(
            name="prctl", body=load_argument(0) + refuse_values((_PR_SET_DUMPABLE, _PR_SET_NAME))
        ),
        Judged(name="prlimit64", body=load_argument(0) + only_if(JUMP_EQUAL, 0)),
        Judged(name="mmap", body=load_argument(3) + grows + shared),
    ]


def build_filter(machine: Machine, *, for_gpus: bool = False) -> bytes:
    """The BPF program of ranks within walls for one architecture, 8 bytes per instruction.

    For ranks on GPUs it lets shared anonymous memory pass: that is bounded by the supervisor's
    reading of what the ranks hold, twenty times a second, and by no rlimit.

    Source: Linux, Documentation/userspace-api/seccomp_filter.rst.
    """
    return assemble(machine, judged_calls(for_gpus=for_gpus), ALLOWED.split())


def assemble(machine: Machine, judged_calls: Sequence[Judged], allowed: Iterable[str]) -> bytes:
    """A whole filter from the calls that are judged and those that pass unseen."""
    table = numbers(machine)
    parts = [
        statement(_LOAD, _OFFSET_ARCH),
        jump(JUMP_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        returning(_KILL),
        statement(_LOAD, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        parts.append(jump(_JUMP_ABOVE_OR_EQUAL, _X32_BIT, 0, 1) + returning(_KILL))
    for judged in judged_calls:
        length = len(judged.body) // 8
        parts.append(jump(JUMP_EQUAL, table[judged.name], 0, length) + judged.body)
    for name in allowed:
        if name in table:
            parts.append(jump(JUMP_EQUAL, table[name], 0, 1) + returning(ALLOW))
    for name in _FALL_BACK:
        parts.append(jump(JUMP_EQUAL, table[name], 0, 1) + returning(ENOSYS))
    newest = max(table.values())
    parts.append(
        jump(_JUMP_ABOVE_OR_EQUAL, newest + 1, 0, 1) + returning(ENOSYS) + returning(EPERM)
    )
    return b"".join(parts)
