"""Resource limits of one rank, set by the rank itself before learner code.

May import engine.program.
"""

import contextlib
import os
import re
import resource
from pathlib import Path

from engine.program import MIB, NUM_DESCRIPTORS, Limits

_PROCESSES_BASE = 64
_PROCESSES_PER_RANK = 64
"""Threads count too, over all ranks of the run: gloo takes 4 for the first group, then
3 each, and fully_shard makes two groups per call when it reshards to fewer ranks."""
_STATUS_BYTES = 1 << 14
_VM_DATA = re.compile(rb"^VmData:\s*(\d+) kB$", re.MULTILINE)
_DATA_SLACK_BYTES = 256 * MIB
"""Thread stacks and allocator arenas reserve more address space than they use."""


def num_processes(world_size: int) -> int:
    """Processes and threads that all ranks of a run may have together."""
    return _PROCESSES_BASE + _PROCESSES_PER_RANK * world_size


def apply_limits(limits: Limits, world_size: int, num_others: int = 0) -> None:
    """Bound this process and all that it starts; raising them again is not possible.

    num_others: processes and threads that the user of a run has beside it; none within walls.
    """
    most_data_bytes = data_bytes() + limits.memory_bytes + _DATA_SLACK_BYTES
    for name, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, NUM_DESCRIPTORS),
        (resource.RLIMIT_NPROC, num_processes(world_size) + num_others),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_DATA, most_data_bytes),
        (resource.RLIMIT_STACK, 8 * MIB),
        (resource.RLIMIT_MEMLOCK, MIB),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 256),
    ):
        _, hard = resource.getrlimit(name)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def prefer_as_victim() -> None:
    """If the machine itself runs out of memory, the kernel takes this and its children first.

    Called while the process is dumpable: afterwards its files in /proc belong to root. Best effort:
    the limits of a run do not rest on it.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def data_bytes() -> int:
    """Private writable memory that this process already has mapped (forked from the zygote)."""
    descriptor = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
    status = os.read(descriptor, _STATUS_BYTES)
    os.close(descriptor)
    found = _VM_DATA.search(status)
    return int(found[1]) * 1024 if found else 0
