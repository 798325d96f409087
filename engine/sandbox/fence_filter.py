"""The system call filter of a fenced rank. May import engine.sandbox.seccomp.

No namespace stands behind this one, so beyond what is refused within walls it keeps a rank from
every other process of its user, from all sockets, and from what Landlock does not look at: who owns
a file and with which mode. It is built for one process, whose id is part of it.
"""

from engine.sandbox.seccomp import (
    ALLOW,
    ALLOWED,
    ENOSYS,
    EPERM,
    JUMP_EQUAL,
    JUMP_SET,
    NAMESPACE_FLAGS,
    NO_SOCKETS,
    Judged,
    assemble,
    judged_calls,
    jump,
    load_argument,
    only_if,
    refuse_values,
    returning,
)
from engine.sandbox.syscalls import Machine, numbers

_CLONE_THREAD = 0x00010000
_PR_SET_NAME, _PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 15, 1, 4
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_NOTIFY, _F_SETPIPE_SZ = 8, 10, 15, 1026, 1031
_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
_NEW_PROCESSES = "execve fork vfork"
_OTHER_PROCESSES = "pidfd_open pidfd_send_signal setpgid tkill"
_SOCKETS = (
    "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg "
    "recvmsg sendmmsg sendmsg sendto setsockopt shutdown"
)
_MACHINE_WIDE = "sync"
_OWN_PROCESS = "kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo"
_OWN_SCHEDULING = "sched_setaffinity sched_setattr sched_setparam sched_setscheduler"
_ATTRIBUTES = (
    "chmod chown fchmod fchmodat fchmodat2 fchown fchownat futimesat lchown utime utimensat utimes"
)
_AS_WITHIN_WALLS = ("prlimit64", "mmap")


def build_fence_filter(
    machine: Machine, pid: int, *, owns_only_scratch: bool, for_gpus: bool = False
) -> bytes:
    """The BPF program of the fenced process with this id.

    owns_only_scratch: its user owns no file but those of its scratch, so it may change their modes;
    else it could do so to the files of whoever runs the engine.
    """
    own = load_argument(0) + only_if(JUMP_EQUAL, pid)
    self_or_own = load_argument(0) + _allow(0) + only_if(JUMP_EQUAL, pid)
    judged = [call for call in judged_calls(for_gpus=for_gpus) if call.name in _AS_WITHIN_WALLS]
    judged += [Judged(name=name, body=own) for name in _OWN_PROCESS.split()]
    judged += [Judged(name=name, body=self_or_own) for name in _OWN_SCHEDULING.split()]
    judged += [
        Judged(name="clone", body=load_argument(0) + _threads_only()),
        Judged(name="setpriority", body=load_argument(0) + _own_priority()),
        Judged(name="prctl", body=load_argument(0) + refuse_values(_refused_prctl())),
        Judged(name="fcntl", body=load_argument(1) + refuse_values(_refused_fcntl())),
        Judged(name="ioctl", body=load_argument(1) + refuse_values(_refused_ioctl())),
        Judged(name="socket", body=returning(NO_SOCKETS)),
        Judged(name="socketpair", body=returning(NO_SOCKETS)),
    ]
    table = numbers(machine)
    judged += [
        Judged(name=name, body=returning(ENOSYS))
        for name in _NEW_PROCESSES.split()
        if name in table
    ]
    # What makes processes or sockets says so by errors of its own: a diagnosis tells them apart.
    refused = " ".join(
        (
            _NEW_PROCESSES,
            "socket socketpair",
            _OTHER_PROCESSES,
            _SOCKETS,
            _MACHINE_WIDE,
            _OWN_PROCESS,
            _OWN_SCHEDULING,
        )
    )
    refused += " setpriority" + ("" if owns_only_scratch else " " + _ATTRIBUTES)
    without = set(refused.split())
    return assemble(machine, judged, [name for name in ALLOWED.split() if name not in without])


def _allow(value: int) -> bytes:
    return jump(JUMP_EQUAL, value, 0, 1) + returning(ALLOW)


def _threads_only() -> bytes:
    no_namespace = jump(JUMP_SET, NAMESPACE_FLAGS, 0, 1) + returning(EPERM)
    return no_namespace + jump(JUMP_SET, _CLONE_THREAD, 0, 1) + returning(ALLOW) + returning(ENOSYS)


def _own_priority() -> bytes:
    """Of a process, not of a group or a user; and of oneself."""
    is_process = jump(JUMP_EQUAL, 0, 1, 0) + returning(EPERM)
    return is_process + load_argument(1) + only_if(JUMP_EQUAL, 0)


def _refused_prctl() -> tuple[int, ...]:
    return (_PR_SET_NAME, _PR_SET_PDEATHSIG, _PR_SET_DUMPABLE)  # no rank may outlive its init


def _refused_fcntl() -> tuple[int, ...]:
    """Among them what has the kernel send signals to somebody else."""
    return (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_NOTIFY, _F_SETPIPE_SZ)


def _refused_ioctl() -> tuple[int, ...]:
    return (_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP)
