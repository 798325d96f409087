"""The warm parent: imports torch once, stays single-threaded, forks supervisors on demand.

May import everything of the engine but executor. Started by the executor as a process of its own
with one socket; each byte `p` parks one sandbox, whose connection goes back over the socket.
"""

import array
import contextlib
import functools
import gc
import json
import os
import signal
import socket
import sys
from typing import NoReturn

from engine.sandbox import linux
from engine.sandbox.lock import Lock
from engine.sandbox.root import plan_root
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of
from engine.sandbox.tiers import Probe, probe
from engine.supervisor.park import ParkPlan, supervise


def main() -> NoReturn:
    """Warm up, say hello, then serve until the executor hangs up."""
    control = socket.socket(fileno=int(sys.argv[1]))
    allow_unsandboxed = sys.argv[2] == "allow-unsandboxed"
    num_parked_ranks = int(sys.argv[3])
    linux.take_image_name()
    found = probe()
    if found.tier == "open" and not allow_unsandboxed:
        _hello(control, found)
        sys.exit(0)
    plan = _warm(found, num_parked_ranks)
    _hello(control, found)
    _serve(control, plan)
    sys.exit(0)


def _hello(control: socket.socket, found: Probe) -> None:
    hello = {"tier": found.tier, "reason": found.reason, "remedy": found.remedy}
    with contextlib.suppress(ConnectionError):  # the executor stopped while this one warmed up
        control.sendall(json.dumps(hello).encode() + b"\n")


def _warm(found: Probe, num_parked_ranks: int) -> ParkPlan:
    """Import and rehearse whatever a rank would otherwise do on its own time."""
    from engine import rank, wire
    from engine.warm import rehearse

    warmed = rank.warm_up()
    rehearse()
    wire.prepare()
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"the zygote has {threads} threads: a fork of it could hang"
    gc.collect()
    gc.freeze()
    return ParkPlan(
        lock=_make_lock() if found.tier != "open" else None,
        tier=found.tier,
        num_parked_ranks=num_parked_ranks,
        rank_main=functools.partial(rank.rank_main, warmed),
        store_main=rank.store_main,
    )


def _make_lock() -> Lock:
    from engine.program import Limits

    machine = machine_of(os.uname().machine)
    assert machine, "the probe found a sandbox on a machine without a table"
    limits = Limits()
    return Lock(
        plan=plan_root(scratch_bytes=limits.scratch_bytes, scratch_inodes=limits.scratch_inodes),
        seccomp_filter=build_filter(machine),
        changes_user=os.geteuid() == 0,
    )


def _serve(control: socket.socket, plan: ParkPlan) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors report over their connections
    with contextlib.suppress(ConnectionError):  # the executor hung up with a slot on its way
        _serve_requests(control, plan)


def _serve_requests(control: socket.socket, plan: ParkPlan) -> None:
    while requests := control.recv(64):
        for _ in requests:
            ours, theirs = socket.socketpair()
            if os.fork() == 0:
                _become_supervisor(control, ours, theirs, plan)
            theirs.close()
            descriptors = array.array("i", [ours.fileno()])
            control.sendmsg([b"s"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            ours.close()


def _become_supervisor(
    control: socket.socket, ours: socket.socket, theirs: socket.socket, plan: ParkPlan
) -> NoReturn:
    control.close()
    ours.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    supervise(theirs, plan)


if __name__ == "__main__":
    main()
