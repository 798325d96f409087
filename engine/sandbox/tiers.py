"""Which isolation this machine allows, found out by doing it in a forked child.

May import the rest of engine.sandbox. Only `walled` and `open` are told apart here.
"""

import os
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Literal, NoReturn

from engine.errors import EngineCrashed
from engine.program import Limits
from engine.sandbox import linux
from engine.sandbox.launch import launch_walled
from engine.sandbox.lock import Lock, engage
from engine.sandbox.root import build_root, plan_root
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The tier, and where it is `open`, why and what to change."""

    tier: Literal["walled", "open"]
    reason: str | None = None
    remedy: str | None = None


def probe() -> Probe:
    """Build a whole sandbox in a child and lock a process in; what fails names the reason."""
    machine = machine_of(os.uname().machine) if sys.platform == "linux" else None
    if machine is None:
        return Probe(
            tier="open",
            reason=f"Runs need Linux on x86_64 or aarch64, not {sys.platform}.",
            remedy="Host the academy on such a machine; lessons stay readable here.",
        )
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, _try_it(build_filter(machine)).encode()[:1000])
        os._exit(0)
    os.close(write)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(child, 0)
    if said == "ok":
        return Probe(tier="walled")
    return Probe(
        tier="open", reason=f"This machine refuses to isolate runs ({said}).", remedy=_remedy(said)
    )


def _try_it(seccomp_filter: bytes) -> str:
    """In a child: "ok", or the first step that failed."""
    read, write = os.pipe()
    limits = Limits()
    plan = plan_root(scratch_bytes=limits.scratch_bytes, scratch_inodes=limits.scratch_inodes)
    lock = Lock(plan=plan, seccomp_filter=seccomp_filter, changes_user=os.geteuid() == 0)

    def init() -> NoReturn:
        try:
            build_root(plan)
            linux.loopback_up()
            socket.sethostname("sandbox")
            engage(lock)
            os.write(write, b"ok")
        except OSError as error:
            os.write(write, str(error).encode()[:900])
        os._exit(0)

    try:
        pid = launch_walled(init)
    except (EngineCrashed, OSError) as error:
        return str(error)
    os.close(write)
    said = os.read(read, 1000).decode() or "the first process of the sandbox died"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return said


def _remedy(said: str) -> str:
    if "unshare" in said or "max_user_namespaces" in said or "uid_map" in said:
        return (
            "Allow unprivileged user namespaces: `sysctl -w user.max_user_namespaces=10000`; on "
            "Ubuntu also `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`; in a "
            "container start it with user namespaces allowed."
        )
    if "proc" in said:
        return "Run outside a container, or give the container an unmasked /proc."
    return "Run on a Linux kernel of version 5.12 or newer, outside a restricted container."
