"""What the ranks of a run compute on: which GPUs this machine has for runs, and who gets them.

May import the leaves. Nothing here touches CUDA: GPUs are counted by their device files, since a
process that has initialised CUDA cannot fork ranks that use it.
"""

import os
import re
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from engine.errors import DeviceUnavailable
from engine.messages import DIAGNOSES, render
from engine.program import MIB, Program

RunsOn = Literal["cpu", "cuda"]
VISIBLE = "CUDA_VISIBLE_DEVICES"
HOST_BYTES_PER_GPU = 2048 * MIB
"""Host memory that CUDA's context and libraries may take in each rank, beyond the run's limit."""

_DEV = Path("/dev")
_GPU = re.compile(r"nvidia(\d{1,2})")
_CONTROL = ("nvidiactl", "nvidia-uvm")
"""Without these no GPU can be used. The driver makes them when CUDA is first used, in a sandbox
nobody could: where they are missing, running `nvidia-smi` and any CUDA program once makes them."""
_BITS = struct.Struct("<I")
_MAX_GPUS = 8 * _BITS.size
REQUEST_BYTES = _BITS.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """What this machine has for runs."""

    numbers: tuple[int, ...] = ()
    """N of each /dev/nvidiaN."""
    is_cuda_built: bool = True
    """Whether the installed PyTorch can use GPUs at all."""

    @property
    def num_usable(self) -> int:
        """How many ranks can have a GPU of their own."""
        return len(self.numbers) if self.is_cuda_built else 0


def find_gpus(environment: Mapping[str, str], dev: Path = _DEV) -> tuple[int, ...]:
    """Numbers of the GPUs that this process may use; CUDA_VISIBLE_DEVICES restricts them.

    Only a list of indices is understood there; names of GPUs (UUIDs) and indices that do not exist
    end the list, as an index that does not exist does for CUDA itself.
    """
    if not all(_is_usable(dev / name) for name in _CONTROL):
        return ()
    names = (_GPU.fullmatch(path.name) for path in dev.iterdir())
    found = sorted(int(match[1]) for match in names if match and _is_usable(dev / match[0]))
    return _visible([number for number in found if number < _MAX_GPUS], environment.get(VISIBLE))


def _is_usable(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode) and os.access(path, os.R_OK | os.W_OK)
    except OSError:
        return False


def _visible(numbers: list[int], wanted: str | None) -> tuple[int, ...]:
    if wanted is None:
        return tuple(numbers)
    chosen: list[int] = []
    for part in wanted.split(","):
        index = part.strip()
        if not index.isascii() or not index.isdecimal() or int(index) >= len(numbers):
            break
        chosen.append(numbers[int(index)])
    return tuple(sorted(set(chosen)))


def choose_device(program: Program, gpus: Gpus) -> RunsOn:
    """What the ranks of a program run on: a GPU each, or all on CPU.

    A simulation computes nothing and needs no GPU. Raises: DeviceUnavailable.
    """
    if program.device == "cpu" or program.simulated_ranks is not None:
        return "cpu"
    if program.world_size <= gpus.num_usable:
        return "cuda"
    if program.device == "cuda":
        raise _unavailable(program.world_size, gpus)
    return "cpu"


def has_too_few_gpus(program: Program, gpus: Gpus) -> bool:
    """Whether `auto` took CPU although there are GPUs.

    Where there is none nobody expects one, and a note on every run would only teach learners to
    overlook notes.
    """
    is_auto = program.device == "auto" and program.simulated_ranks is None
    return is_auto and 0 < gpus.num_usable < program.world_size


def on_gpus(program: Program) -> Program:
    """The program as its ranks on GPUs get it, with room in host memory for CUDA itself."""
    extra_bytes = HOST_BYTES_PER_GPU * program.world_size
    limits = replace(program.limits, memory_bytes=program.limits.memory_bytes + extra_bytes)
    return replace(program, device="cuda", limits=limits)


def encode_gpus(gpus: Sequence[int]) -> bytes:
    """The request for a sandbox whose ranks reach these GPUs: one number, a bit per GPU."""
    return _BITS.pack(sum(1 << number for number in set(gpus)))


def decode_gpus(request: bytes) -> tuple[int, ...]:
    """The GPUs of a request, in order; none for a sandbox of CPU ranks."""
    (bits,) = _BITS.unpack(request)
    return tuple(number for number in range(_MAX_GPUS) if bits >> number & 1)


def visible_devices(gpus: Sequence[int], *, is_walled: bool) -> str:
    """CUDA_VISIBLE_DEVICES of the ranks of a run, the same for each of them.

    As under torchrun every rank sees all GPUs of its run and takes the one of its LOCAL_RANK: one
    that saw its own only would fail at `torch.cuda.set_device(local_rank)`. Where the sandbox
    holds no other GPU's device file, CUDA numbers those that are there from 0.
    """
    return ",".join(map(str, range(len(gpus)) if is_walled else gpus))


def _unavailable(num_ranks: int, gpus: Gpus) -> DeviceUnavailable:
    code = "cuda-too-few-gpus"
    if not gpus.numbers:
        code = "cuda-no-gpu"
    elif not gpus.is_cuda_built:
        code = "cuda-not-built"
    args = {"ranks": num_ranks, "gpus": len(gpus.numbers)}
    return DeviceUnavailable(render(DIAGNOSES[code], args), code=code, args=args)
