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
import time
import weakref
from pathlib import Path
from typing import NoReturn

from engine.devices import REQUEST_BYTES, decode_gpus
from engine.order import ZygoteOrder, decode_order
from engine.sandbox import holes, huge_pages, linux
from engine.sandbox.cgroups import GroupPlace, find_place, sweep
from engine.sandbox.choice import SandboxChoice
from engine.sandbox.fence import can_become_nobody
from engine.sandbox.lock import Lock
from engine.sandbox.root import plan_root
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of
from engine.sandbox.tiers import Found, choose
from engine.supervisor.park import ParkPlan, supervise

_SESSION_NICENESS = 10
_AUTOGROUP_TRIES, _AUTOGROUP_PAUSE_S = 20, 0.11


def main() -> NoReturn:
    """Warm up, say hello, then serve until the executor hangs up."""
    order = decode_order(sys.argv[1])
    control = socket.socket(fileno=order.control)
    linux.take_image_name()
    _leave_room_for_the_server()
    if order.is_enclosed:
        _settle()
    found = choose(order.sandbox, is_enclosed=order.is_enclosed)
    if found.tier == "open" and not order.sandbox.allow_open:
        _hello(control, found, is_cuda_built=False)
        sys.exit(0)
    plan = _warm(found, order)
    filling = _arrange_memory()
    _hello(control, found, is_cuda_built=_is_cuda_built())
    _serve(control, plan)
    del filling  # it had to last until here
    sys.exit(0)


def _leave_room_for_the_server() -> None:
    """Have whoever reads a page served before all runs together.

    Where processes are in no group of a cpu controller, Linux shares the processor between sessions
    before it looks at any process's niceness. So all runs stay in this process's session (seccomp
    refuses them another), which counts as much as one process of this niceness would.
    Source: Linux, sched(7), "The autogroup feature".
    """
    for _ in range(_AUTOGROUP_TRIES):
        try:
            linux.write_text("/proc/self/autogroup", str(_SESSION_NICENESS))
        except BlockingIOError:  # an ordinary user may do this ten times a second, all together
            time.sleep(_AUTOGROUP_PAUSE_S)
        except OSError:
            return  # a kernel without it: then the ranks' own niceness is enough
        else:
            return


def _settle() -> None:
    """Take the place inside the outer sandbox; its user may not read the engine's files."""
    from engine import rank, warm, wire
    from engine.sandbox.fortress import settle

    assert all((rank, warm, wire)), "imported while they can be read for certain"
    settle()


def _is_cuda_built() -> bool:
    import torch

    return torch.version.cuda is not None  # asks no driver, unlike is_available


def _hello(control: socket.socket, found: Found, *, is_cuda_built: bool) -> None:
    hello = {
        "tier": found.tier,
        "reason": found.reason,
        "remedy": found.remedy,
        "is_cuda_built": is_cuda_built,
    }
    with contextlib.suppress(ConnectionError):  # the executor stopped while this one warmed up
        control.sendall(json.dumps(hello).encode() + b"\n")


def _warm(found: Found, order: ZygoteOrder) -> ParkPlan:
    """Import and rehearse whatever a rank would otherwise do on its own time."""
    from engine import rank, wire
    from engine.warm import rehearse, rehearse_forward, rehearse_traced

    warmed = rank.warm_up(order.runs_on)
    if order.runs_on == "cpu":
        rehearse()
        rehearse_traced(warmed.traced)
    else:
        rehearse_forward()
    wire.prepare()
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"the zygote has {threads} threads: a fork of it could hang"
    if order.runs_on == "cuda":
        assert not _has_initialised_cuda(), "the zygote has initialised CUDA: no fork of it could"
    return ParkPlan(
        lock=_make_lock(order, found) if found.tier != "open" else None,
        tier=found.tier,
        num_parked_ranks=1 if found.tier == "fenced" else order.num_parked_ranks,
        rank_main=functools.partial(rank.rank_main, warmed),
        store_main=rank.store_main,
        group_place=_group_place(order.sandbox),
    )


def _group_place(choice: SandboxChoice) -> GroupPlace | None:
    """Where runs get control groups; what an earlier parent that was killed left is cleared."""
    if "cgroup" in choice.without:
        return None
    try:
        place = find_place()
    except OSError:
        return None  # the watchdog bounds runs alone; doctor says what is refused
    sweep(place)
    return place


def _arrange_memory() -> holes.Filling:
    """Have forks share this memory for long, and copy and touch little of it."""
    _forget_finalizers()
    gc.collect()
    gc.freeze()
    filling = holes.fill()
    huge_pages.collapse()
    return filling


def _forget_finalizers() -> None:
    """Leave out at a rank's exit what belongs to the parent's own objects.

    torch takes its operators back then, one by one, which would touch a tenth of the memory that a
    rank shares with its parent; the process is over right after it.
    """
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def _has_initialised_cuda() -> bool:
    """Whether the driver's device files are open, as they stay from the first use of CUDA on."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists this folder
            if str(link.readlink()).startswith("/dev/nvidia"):
                return True
    return False


def _make_lock(order: ZygoteOrder, found: Found) -> Lock:
    from engine.program import Limits

    machine = machine_of(os.uname().machine)
    assert machine, "the probe found a sandbox on a machine without a table"
    limits, is_fenced = Limits(), found.tier == "fenced"
    return Lock(
        plan=plan_root(scratch_bytes=limits.scratch_bytes, scratch_inodes=limits.scratch_inodes),
        seccomp_filter=build_filter(machine, for_gpus=order.runs_on == "cuda"),
        changes_user=can_become_nobody() if is_fenced else os.geteuid() == 0,
        without=order.sandbox.without,
        is_fenced=is_fenced,
        for_gpus=order.runs_on == "cuda",
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
    if plan.tier == "fortified":
        # With this parent the outer sandbox ends, a moment later: in between no run may begin here.
        linux.die_with_parent(signal.SIGKILL)
    control.close()
    ours.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)  # and no session of its own, see `_leave_room_for_the_server`
    supervise(theirs, plan)


if __name__ == "__main__":
    main()
