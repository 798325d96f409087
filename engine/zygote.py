"""The warm parent: imports torch once, stays single-threaded, forks supervisors on demand.

May import everything of the engine but executor. Started by the executor as a process of its own
with one socket; each request parks one sandbox, whose connection goes back over the socket.

Ranks on GPUs have a parent of their own. What has initialised CUDA cannot fork users of it, and
torch does so in a first backward: autograd counts the GPUs then, remembers the number and starts
a thread for each. So this parent only imports, and that of CPU ranks, which rehearses, sees no GPU.
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
from pathlib import Path
from typing import NoReturn

from engine.devices import REQUEST_BYTES, decode_gpus
from engine.order import ZygoteOrder, decode_order
from engine.sandbox import linux
from engine.sandbox.lock import Lock
from engine.sandbox.root import plan_root
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of
from engine.sandbox.tiers import Probe, probe
from engine.supervisor.park import ParkPlan, supervise


def main() -> NoReturn:
    """Warm up, say hello, then serve until the executor hangs up."""
    order = decode_order(sys.argv[1])
    control = socket.socket(fileno=order.control)
    linux.take_image_name()
    found = probe()
    if found.tier == "open" and not order.sandbox.allow_open:
        _hello(control, found, is_cuda_built=False)
        sys.exit(0)
    plan = _warm(found, order)
    _hello(control, found, is_cuda_built=_is_cuda_built())
    _serve(control, plan)
    sys.exit(0)


def _is_cuda_built() -> bool:
    import torch

    return torch.version.cuda is not None  # asks no driver, unlike is_available


def _hello(control: socket.socket, found: Probe, *, is_cuda_built: bool) -> None:
    hello = {
        "tier": found.tier,
        "reason": found.reason,
        "remedy": found.remedy,
        "is_cuda_built": is_cuda_built,
    }
    with contextlib.suppress(ConnectionError):  # the executor stopped while this one warmed up
        control.sendall(json.dumps(hello).encode() + b"\n")


def _warm(found: Probe, order: ZygoteOrder) -> ParkPlan:
    """Import and rehearse whatever a rank would otherwise do on its own time."""
    from engine import rank, wire
    from engine.warm import rehearse, rehearse_forward

    warmed = rank.warm_up(order.runs_on)
    if order.runs_on == "cpu":
        rehearse()
    else:
        rehearse_forward()
    wire.prepare()
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"the zygote has {threads} threads: a fork of it could hang"
    if order.runs_on == "cuda":
        assert not _has_initialised_cuda(), "the zygote has initialised CUDA: no fork of it could"
    gc.collect()
    gc.freeze()
    return ParkPlan(
        lock=_make_lock(order) if found.tier != "open" else None,
        tier=found.tier,
        num_parked_ranks=order.num_parked_ranks,
        rank_main=functools.partial(rank.rank_main, warmed),
        store_main=rank.store_main,
    )


def _has_initialised_cuda() -> bool:
    """Whether the driver's device files are open, as they stay from the first use of CUDA on."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists this folder
            if str(link.readlink()).startswith("/dev/nvidia"):
                return True
    return False


def _make_lock(order: ZygoteOrder) -> Lock:
    from engine.program import Limits

    machine = machine_of(os.uname().machine)
    assert machine, "the probe found a sandbox on a machine without a table"
    limits = Limits()
    return Lock(
        plan=plan_root(scratch_bytes=limits.scratch_bytes, scratch_inodes=limits.scratch_inodes),
        seccomp_filter=build_filter(machine, for_gpus=order.runs_on == "cuda"),
        changes_user=os.geteuid() == 0,
        without=order.sandbox.without,
    )


def _serve(control: socket.socket, plan: ParkPlan) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors report over their connections
    with contextlib.suppress(ConnectionError):  # the executor hung up with a slot on its way
        _serve_requests(control, plan)


def _serve_requests(control: socket.socket, plan: ParkPlan) -> None:
    while len(request := control.recv(REQUEST_BYTES, socket.MSG_WAITALL)) == REQUEST_BYTES:
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            _become_supervisor(control, ours, theirs, plan.reaching(decode_gpus(request)))
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
