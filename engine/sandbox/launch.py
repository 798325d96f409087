"""Start a run's init inside fresh namespaces, from the trusted side. May import engine.sandbox.

Called in the supervisor, which is a fork of the zygote with one thread:

    supervisor --fork--> builder (unshares, maps ids) --fork--> init (pid 1 of the run)

The builder exits at once; init becomes the supervisor's own child, since that is a subreaper.
"""

import os
from collections.abc import Callable
from typing import NoReturn

from engine.errors import EngineCrashed
from engine.sandbox import linux
from engine.sandbox.root import LEARNER_ID

_HOST_ID_OF_LEARNER = 61000
"""Where root builds the sandbox, ranks have this otherwise unused id on the host."""
_NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
    | linux.CLONE_NEWCGROUP
)
BUILDER_FAILED = 95


def launch_walled(init: Callable[[], NoReturn]) -> int:
    """Fork `init` as pid 1 of new namespaces; returns its pid here.

    Raises: EngineCrashed when the kernel refuses a step.
    """
    linux.become_subreaper()
    is_root = os.geteuid() == 0
    unshared_read, unshared_write = os.pipe()
    mapped_read, mapped_write = os.pipe()
    pid_read, pid_write = os.pipe()
    host_ids = (os.geteuid(), os.getegid())
    builder = os.fork()
    if builder == 0:
        try:
            os.setsid()
            linux.unshare(_NAMESPACES)
            if is_root:
                os.write(unshared_write, b"u")
                if os.read(mapped_read, 1) != b"m":
                    os._exit(BUILDER_FAILED)
                os.setresgid(0, 0, 0)
                os.setresuid(0, 0, 0)
            else:
                _map_own_ids(*host_ids)
            linux.write_text("/proc/sys/user/max_user_namespaces", "0")
            pid = os.fork()
            if pid == 0:
                for descriptor in (unshared_read, unshared_write, mapped_read, mapped_write):
                    os.close(descriptor)
                os.close(pid_read)
                os.close(pid_write)
                init()
            os.write(pid_write, str(pid).encode())
            os._exit(0)
        except OSError as error:
            os.write(pid_write, f"{error}".encode()[:200])
            os._exit(BUILDER_FAILED)
    for descriptor in (unshared_write, mapped_read, pid_write):
        os.close(descriptor)
    if is_root and os.read(unshared_read, 1) == b"u":
        _map_ids_of(builder)
        os.write(mapped_write, b"m")
    said = os.read(pid_read, 256).decode()
    for descriptor in (unshared_read, mapped_write, pid_read):
        os.close(descriptor)
    os.waitpid(builder, 0)
    if not said.isdigit():
        raise EngineCrashed(f"no sandbox: {said or 'the builder died'}")
    return int(said)


def launch_open(init: Callable[[], NoReturn]) -> int:
    """Fork `init` without any isolation; only where the operator asked for it."""
    linux.become_subreaper()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        init()
    return pid


def _map_own_ids(uid: int, gid: int) -> None:
    linux.write_text("/proc/self/setgroups", "deny")
    linux.write_text("/proc/self/uid_map", f"{LEARNER_ID} {uid} 1")
    linux.write_text("/proc/self/gid_map", f"{LEARNER_ID} {gid} 1")


def _map_ids_of(pid: int) -> None:
    mapping = f"0 0 1\n{LEARNER_ID} {_HOST_ID_OF_LEARNER} 1\n"
    linux.write_text(f"/proc/{pid}/setgroups", "deny")
    linux.write_text(f"/proc/{pid}/uid_map", mapping)
    linux.write_text(f"/proc/{pid}/gid_map", mapping)
