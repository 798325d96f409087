"""Which isolation this machine allows, found out by making it in a forked child.

May import the rest of engine.sandbox. A tier is taken when a process was really locked in with all
of its layers, never because single probes succeed.
"""

import os
import re
import signal
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from engine.errors import EngineCrashed
from engine.program import Limits
from engine.sandbox import linux
from engine.sandbox.choice import TIERS, SandboxChoice, Tier
from engine.sandbox.fence import (
    can_become_nobody,
    closed_folder,
    engage_fence,
)
from engine.sandbox.findings import DOCTOR_FIX, PLATFORM_FIX, Probe
from engine.sandbox.launch import launch_walled
from engine.sandbox.lock import Lock, engage
from engine.sandbox.probes import Missing, attempt, in_child
from engine.sandbox.root import build_root, plan_root
from engine.sandbox.scratch import give_scratch, remove_scratch
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of

_ERRNO = re.compile(r"\[Errno (\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The tier that is taken, and where it is not the best, why and what to change."""

    tier: Tier
    reason: str | None = None
    remedy: str | None = None
    tried: tuple[Probe, ...] = ()
    """Whole tiers that were tried, with what came of it."""


def choose(choice: SandboxChoice, *, is_enclosed: bool = False) -> Found:
    """The strongest tier that the choice admits and this machine makes; open if that is too weak.

    is_enclosed: this process was started inside an outer sandbox, as the tier fortified wants it.
    Fenced runs one rank only; an operator who opted out of isolation wants them all, so then it is
    taken on explicit demand only.
    """
    found = _strongest(choice, is_enclosed=is_enclosed)
    return found if found.tier == "open" else insist(choice, found)


def insist(choice: SandboxChoice, found: Found) -> Found:
    """What was found if it is strong enough for the choice, else open, and why."""
    if TIERS.index(found.tier) <= TIERS.index(choice.at_least):
        return found
    reason = f"The operator demands the tier {choice.at_least}; this machine makes {found.tier}."
    return Found(tier="open", reason=reason, remedy=DOCTOR_FIX, tried=found.tried)


def _strongest(choice: SandboxChoice, *, is_enclosed: bool) -> Found:
    machine = machine_of(os.uname().machine) if os.uname().sysname == "Linux" else None
    if machine is None:
        reason = f"Runs need Linux on x86_64 or aarch64, not {os.uname().sysname}."
        return Found(tier="open", reason=reason, remedy=PLATFORM_FIX)
    tried: list[Probe] = []
    if _admits(choice, "walled"):
        walls = attempt("walls", lambda: _wall_in(build_filter(machine)))
        if walls.is_ok:
            is_best = is_enclosed and _admits(choice, "fortified")
            return Found(tier="fortified" if is_best else "walled", tried=(walls,))
        tried.append(walls)
    if _admits(choice, "fenced") and (choice.at_most == "fenced" or not choice.allow_open):
        fence = _try_fence(build_filter(machine))
        if fence.is_ok:
            return Found(
                tier="fenced",
                reason=_reason(choice, tried),
                remedy=_remedy(choice, tried),
                tried=(*tried, fence),
            )
        tried.append(fence)
    return Found(
        tier="open",
        reason=_reason(choice, tried),
        remedy=_remedy(choice, tried),
        tried=tuple(tried),
    )


def _admits(choice: SandboxChoice, tier: Tier) -> bool:
    return TIERS.index(choice.at_most) <= TIERS.index(tier)


def _remedy(choice: SandboxChoice, tried: list[Probe]) -> str | None:
    if not tried:
        return f"Let the server take a stronger tier: its settings allow {choice.at_most} only."
    return next((probe.fix for probe in tried), None)


def _reason(choice: SandboxChoice, tried: list[Probe]) -> str:
    if not tried:
        return f"The operator allows no stronger isolation than {choice.at_most}."
    failed = "; ".join(str(probe.detail) for probe in tried)
    return f"This machine refuses to isolate runs ({failed})."


def _wall_in(seccomp_filter: bytes) -> str:
    """Build a whole walled sandbox and lock a process in. Raises: OSError, Missing."""
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
    except EngineCrashed as error:
        raise _as_the_kernel_said(str(error)) from None
    os.close(write)
    said = os.read(read, 1000).decode() or "the first process of the sandbox died"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if said != "ok":
        raise _as_the_kernel_said(said)
    return ""


def _try_fence(seccomp_filter: bytes) -> Probe:
    limits = Limits()
    plan = plan_root(scratch_bytes=limits.scratch_bytes, scratch_inodes=limits.scratch_inodes)
    lock = Lock(
        plan=plan,
        seccomp_filter=seccomp_filter,
        changes_user=can_become_nobody(),
        is_fenced=True,
    )
    closed = closed_folder(lock)
    if closed is not None:
        said = f"{closed} is closed to the user that programs run as"
        fix = f"chmod o+x {closed}"
        return Probe(name="fence", is_ok=False, errno="EACCES", detail=said, fix=fix)
    return attempt("fence", lambda: _fence_in(lock))


def _fence_in(lock: Lock) -> str:
    """Lock a process in as a fenced rank is. Raises: OSError, Missing."""
    scratch = tempfile.mkdtemp(prefix="academy-probe-")

    def lock_in() -> str:
        engage_fence(lock, scratch)
        os.listdir(lock.plan.binds[-1])
        Path(scratch, "file").write_text("", encoding="ascii")
        return ""

    try:
        give_scratch(scratch, lock)
        return in_child(lock_in)
    finally:
        remove_scratch(scratch)


def _as_the_kernel_said(said: str) -> OSError | Missing:
    number = _ERRNO.search(said)
    return OSError(int(number[1]), said) if number else Missing(said)
