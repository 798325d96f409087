"""Locks itself in as a rank does, with the device files that are its arguments as those of a GPU,
and prints what it then sees: `python -m tests.engine.walled /dev/zero`.
"""

import json
import mmap
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

from engine.program import Limits
from engine.sandbox.launch import launch_walled
from engine.sandbox.lock import Lock, engage
from engine.sandbox.root import build_root, plan_root
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import machine_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a rank can reach."""

    devices: list[str]
    """Names in /dev."""
    writable: list[str]
    """Of the files that are asked about, those that can be opened for reading and writing."""
    readable: list[str]
    """Of the files that are asked about, those from which something can be read."""
    has_shared_memory: bool
    """Whether it may map shared anonymous memory."""


ASKED = (
    "/dev/zero",
    "/proc/self/status",
    "/proc/meminfo",
    "/proc/devices",
    "/proc/keys",
    "/proc/kallsyms",
    "/proc/timer_list",
    "/proc/sys/kernel/hostname",
    "/sys/devices/system/cpu/online",
    "/sys/class/net/lo/address",
    "/etc/shadow",
)


def look() -> Sight:
    """What this process can reach."""
    return Sight(
        devices=sorted(os.listdir("/dev")),
        writable=[path for path in ASKED if _can_write(path)],
        readable=[path for path in ASKED if _can_read(path)],
        has_shared_memory=_can_share_memory(),
    )


def _can_write(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


def _can_read(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return bool(file.read(16))
    except OSError:
        return False


def _can_share_memory() -> bool:
    try:
        mmap.mmap(-1, mmap.PAGESIZE).close()
    except OSError:
        return False
    return True


def main(nodes: Sequence[str]) -> None:
    """Fork a walled process, and print its Sight as JSON."""
    limits, machine = Limits(), machine_of(os.uname().machine)
    assert machine
    plan = plan_root(scratch_bytes=limits.scratch_bytes, scratch_inodes=limits.scratch_inodes)
    plan = replace(plan, gpu_nodes=tuple(nodes))
    lock = Lock(
        plan=plan,
        seccomp_filter=build_filter(machine, for_gpus=bool(nodes)),
        changes_user=os.geteuid() == 0,
    )
    read, write = os.pipe()

    def init() -> NoReturn:
        build_root(plan)
        engage(lock)
        os.write(write, json.dumps(asdict(look())).encode())
        os._exit(0)

    pid = launch_walled(init)
    os.close(write)
    with open(read, "rb") as pipe:
        print(pipe.read().decode())
    os.waitpid(pid, 0)
    assert Path("/proc/self/status").exists(), "the parent has stayed outside"


if __name__ == "__main__":
    main(sys.argv[1:])
