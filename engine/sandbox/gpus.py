"""What the root of ranks on GPUs holds beyond that of CPU ranks. Standard library only.

The driver's half outside the kernel asks the machine about itself before it does anything: which
device files belong to the driver, where a GPU sits on the bus, how memory lies around it. So these
ranks see a whole proc, some of sys, and the device files of their own run's GPUs; what a whole
proc shows beyond that is covered up.
Source of the device files: NVIDIA driver README, "device files"; of the covered paths: what
container runtimes mask (OCI runtime specification, maskedPaths and readonlyPaths).
"""

from collections.abc import Sequence
from pathlib import Path

_CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_CAPABILITIES = ("/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels")

_READ = (
    "/etc/ld.so.cache",  # where libcuda lies, when not in a folder that the loader knows
    "/etc/alternatives",  # Debian's driver packages choose libcuda through it
    "/etc/nvidia",
    "/sys/bus/pci",
    "/sys/class/pci_bus",
    "/sys/devices/system/cpu",
    "/sys/devices/system/memory",
    "/sys/devices/system/node",
    "/sys/module/nvidia",
    "/sys/module/nvidia_uvm",
)

COVERED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
)
"""Nothing of a GPU is in these, and much of the machine."""


def readable_paths() -> tuple[str, ...]:
    """Files and folders that are read besides the ordinary ones, those that exist."""
    buses = sorted(str(path) for path in Path("/sys/devices").glob("pci*"))
    return tuple(path for path in (*_READ, *buses) if Path(path).exists())


def device_nodes(numbers: Sequence[int]) -> tuple[str, ...]:
    """Device files of these GPUs and of their driver, those that exist; none for no GPU."""
    if not numbers:
        return ()
    own = [f"/dev/nvidia{number}" for number in numbers]
    capabilities = (str(p) for folder in _CAPABILITIES for p in sorted(Path(folder).glob("*")))
    return tuple(path for path in (*_CONTROL, *own, *capabilities) if Path(path).exists())
