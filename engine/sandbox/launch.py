"""Start a run's init inside fresh namespaces, from the trusted side. May import engine.sandbox.

Called in the supervisor, which is a fork of the zygote with one thread:

    supervisor --fork--> builder (unshares, maps ids) --fork--> init (pid 1 of the run)

The builder exits at once; init becomes the supervisor's own child, since that is a subreaper.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from engine.errors import EngineCrashed
from engine.sandbox import linux
from engine.sandbox.cgroups import RunGroup
from engine.sandbox.choice import Layer
from engine.sandbox.pipes import Pipe, make_pipe
from engine.sandbox.root import LEARNER_ID

HOST_ID_OF_LEARNER = 61000
"""Where root builds the sandbox, ranks have this otherwise unused id on the host."""
_ALWAYS = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWCGROUP
_LEFT_OUT_IN_TESTS: tuple[tuple[Layer, int], ...] = (
    ("pid", linux.CLONE_NEWPID),
    ("network", linux.CLONE_NEWNET),
    ("ipc", linux.CLONE_NEWIPC),
)
BUILDER_FAILED = 95


def launch_walled(
    init: Callable[[], NoReturn],
    without: frozenset[Layer] = frozenset(),
    group: RunGroup | None = None,
) -> int:
    """Fork `init` as pid 1 of new namespaces; returns its pid here.

    Raises: EngineCrashed when the kernel refuses a step.
    """
    linux.become_subreaper()
    maps_from_outside = os.geteuid() == 0  # only root may map more ids than its own
    pipes = _BuilderPipes(unshared=make_pipe(), mapped=make_pipe(), pid=make_pipe())
    builder = os.fork()
    if builder == 0:
        _build(init, pipes, without, group, maps_from_outside=maps_from_outside)
    for descriptor in (pipes.unshared.write, pipes.mapped.read, pipes.pid.write):
        os.close(descriptor)
    if maps_from_outside and os.read(pipes.unshared.read, 1):
        map_ids_of(builder)
        os.write(pipes.mapped.write, b"m")
    said = os.read(pipes.pid.read, 256).decode()
    for descriptor in (pipes.unshared.read, pipes.mapped.write, pipes.pid.read):
        os.close(descriptor)
    os.waitpid(builder, 0)
    if not said.isdigit():
        raise EngineCrashed(f"no sandbox: {said or 'the builder died'}")
    return int(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuilderPipes:
    """Between the supervisor and the builder: unshared, then mapped, then init's pid or why not."""

    unshared: Pipe
    mapped: Pipe
    pid: Pipe


def _build(
    init: Callable[[], NoReturn],
    pipes: _BuilderPipes,
    without: frozenset[Layer],
    group: RunGroup | None,
    *,
    maps_from_outside: bool,
) -> NoReturn:
    """In the builder: its group, new namespaces, ids, no further user namespaces, then init."""
    own_ids = (os.geteuid(), os.getegid())
    try:
        os.setpgid(0, 0)
        if group is not None:
            group.join()
        linux.unshare(_namespaces(without))
        if maps_from_outside:
            os.write(pipes.unshared.write, b"u")
            os.close(pipes.mapped.write)  # else the read below would outlive the supervisor
            if os.read(pipes.mapped.read, 1) != b"m":
                os._exit(BUILDER_FAILED)
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        else:
            _map_own_ids(*own_ids)
            os.close(pipes.mapped.write)
        if "user_namespaces" not in without:
            linux.write_text("/proc/sys/user/max_user_namespaces", "0")
        pid = os.fork()
        if pid == 0:
            for descriptor in (pipes.unshared.read, pipes.unshared.write, pipes.mapped.read):
                os.close(descriptor)
            os.close(pipes.pid.read)
            os.close(pipes.pid.write)
            init()
        os.write(pipes.pid.write, str(pid).encode())
        os._exit(0)
    except OSError as error:
        os.write(pipes.pid.write, f"{error}".encode()[:200])
        os._exit(BUILDER_FAILED)


def _namespaces(without: frozenset[Layer]) -> int:
    flags = _ALWAYS
    for layer, flag in _LEFT_OUT_IN_TESTS:
        flags |= 0 if layer in without else flag
    return flags


def launch_open(init: Callable[[], NoReturn], group: RunGroup | None = None) -> int:
    """Fork `init` without any isolation; only where the operator asked for it."""
    linux.become_subreaper()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            if group is not None:
                group.join()
        except OSError:
            os._exit(BUILDER_FAILED)
        init()
    return pid


def _map_own_ids(uid: int, gid: int) -> None:
    linux.write_text("/proc/self/setgroups", "deny")
    linux.write_text("/proc/self/uid_map", f"{LEARNER_ID} {uid} 1")
    linux.write_text("/proc/self/gid_map", f"{LEARNER_ID} {gid} 1")


def learner_map() -> str:
    """The ids of a sandbox that root builds: its own, and the learner's."""
    return f"0 0 1\n{LEARNER_ID} {HOST_ID_OF_LEARNER} 1\n"


def map_ids_of(pid: int) -> None:
    """Give a process in a new user namespace its ids, from outside; needs root."""
    mapping = learner_map()
    linux.write_text(f"/proc/{pid}/setgroups", "deny")
    linux.write_text(f"/proc/{pid}/uid_map", mapping)
    linux.write_text(f"/proc/{pid}/gid_map", mapping)
