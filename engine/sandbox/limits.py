"""Resource limits of one rank, set by the rank itself before learner code.

May import engine.program.
"""

import contextlib
import resource
from pathlib import Path

from engine.program import MIB, Limits

_NUM_DESCRIPTORS = 512
_PROCESSES_BASE = 64
_PROCESSES_PER_RANK = 64
"""Threads count too, over all ranks of the run: gloo takes 4 for the first group, then
3 each, and fully_shard makes two groups per call when it reshards to fewer ranks."""
_DATA_SLACK_BYTES = 256 * MIB
"""Thread stacks and allocator arenas reserve more address space than they use."""


def apply_limits(limits: Limits, world_size: int) -> None:
    """Bound this process and all that it starts; raising them again is not possible."""
    data_bytes = _data_bytes() + limits.memory_bytes + _DATA_SLACK_BYTES
    for name, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _NUM_DESCRIPTORS),
        (resource.RLIMIT_NPROC, _PROCESSES_BASE + _PROCESSES_PER_RANK * world_size),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_DATA, data_bytes),
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


def _data_bytes() -> int:
    """Private writable memory that this process already has mapped (forked from the zygote)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0
