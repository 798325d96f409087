"""Makes a rank's process look like one that torchrun started. May import sandbox and torch."""

import faulthandler
import io
import os
import signal
import sys
import tempfile
from pathlib import Path

import numpy
import torch

from engine.devices import visible_devices
from engine.program import Program
from engine.sandbox.init import RankStart
from engine.sandbox.root import WORK


def prepare_process(start: RankStart, program: Program, stack_fd: int) -> None:
    """Make this process look like one that torchrun started."""
    faulthandler.enable(2, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=stack_fd, all_threads=True)
    rank, world_size = str(start.rank), str(program.simulated_ranks or program.world_size)
    is_walled = start.lock is not None and start.lock.is_walled
    folder = WORK if is_walled else str(Path.cwd())
    os.environ.clear()
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": folder,
        "LANG": "C.UTF-8",
        "RANK": rank,
        "LOCAL_RANK": rank,
        "GROUP_RANK": "0",
        "WORLD_SIZE": world_size,
        "LOCAL_WORLD_SIZE": world_size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(start.port),
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "CUDA_VISIBLE_DEVICES": visible_devices(start.gpus, is_walled=is_walled),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    for name, value in variables.items():  # update() would look at every kind of mapping there is
        os.environ[name] = value
    if start.lock and not is_walled:
        os.environ.update(TMPDIR=folder, USER="learner")  # no other folder, no list of users
        tempfile.tempdir = None  # what the zygote found may not be used here
    os.chdir(folder)
    _seed_from_system()
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = _text_stream(1, "strict")
    sys.stderr = _text_stream(2, "backslashreplace")


def _seed_from_system() -> None:
    """All ranks fork from one parent; as fresh processes they must not share random numbers."""
    seed = int.from_bytes(os.urandom(8), "little")  # Python reseeds its own random in every fork
    numpy.random.seed(seed & 0xFFFFFFFF)
    # torch.manual_seed would format the stack for every kind of GPU; those seed themselves.
    torch.default_generator.manual_seed(seed & 0x7FFF_FFFF_FFFF_FFFF)


def _text_stream(descriptor: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors=errors, line_buffering=True)
