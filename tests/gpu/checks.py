"""The checks that need a GPU, each a function that answers with its figures or fails an assertion.

One GPU is enough. What trains runs in the engine, on its real ranks with nccl; only ranks that
share a GPU, which the engine refuses, are plain processes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from engine.devices import find_gpus
from engine.errors import DeviceUnavailable
from engine.events import Allocation, Collective, Memory, Note
from engine.executor.local import LocalExecutor
from engine.program import Device, Limits, Program
from engine.sandbox.choice import SandboxChoice
from tests.gpu.running import ended, ran

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "engine" / "torch_programs" / "gpu"
BLOCK_BYTES = 512
"""The CUDA allocator hands out multiples of this."""
SHARED_DEADLINE_S = 100
PORT = 29617
TOLERANCE = {"torch.float64": 1e-9, "torch.float32": 1e-4}
HALF_TOLERANCE = 0.05
FAR_MEAN_TOLERANCE = 1e-2
"""Values around 1e4 have steps of 1e-3 in float32."""

Check = Callable[[LocalExecutor], Awaitable[str]]


def missing() -> str | None:
    """Why nothing of this can be checked here; None when it can."""
    if not find_gpus(os.environ):
        return "this machine has no GPU (no usable /dev/nvidia*)"
    import torch  # a test process is no warm parent

    return None if torch.cuda.is_available() else "this PyTorch cannot use the machine's GPU"


async def open_executor() -> LocalExecutor:
    """The engine as it is in use; without walls where this machine cannot build any."""
    executor = LocalExecutor(slots=1, num_parked=0, sandbox=SandboxChoice(allow_open=True))
    await executor.start()
    return executor


def source_of(name: str) -> str:
    """A program of the checks, with what begins them all."""
    return "".join((PROGRAMS / f"{part}.py").read_text("utf-8") for part in ("begin", name))


# ------------------------------------------------------------------ training with nccl
async def _trains(executor: LocalExecutor, name: str) -> str:
    done = await ran(executor, name, source_of(name))
    assert done.started.device == "cuda"
    told = json.loads(done.text().splitlines()[0])
    assert told["backend"] == "nccl"
    assert told["gap"] < 1e-4, told
    calls = [event for event in done.events if isinstance(event, Collective)]
    assert calls, "no collective was seen"
    without_end = [call for call in calls if call.duration_ns is None]
    assert not without_end, f"{len(without_end)} of {len(calls)} collectives have no end"
    memory = [event for event in done.events if isinstance(event, Memory)]
    used = [event for event in memory if event.total_bytes]
    assert used, "nothing was seen on the GPU"
    short = [e for e in used if e.allocated_bytes is None or e.allocated_bytes < e.total_bytes]
    assert not short, f"the allocator holds less than its storages: {short[0]}"
    assert not [event for event in done.events if isinstance(event, Note)], "nothing is adapted"
    peak_mib = done.outcome.ranks[0].peak_bytes // 2**20
    return (
        f"losses within {told['gap']:.1e} of plain training, {len(calls)} collectives with ends, "
        f"{len(used)} readings of memory, {peak_mib} MiB of host memory"
    )


async def ddp(executor: LocalExecutor) -> str:
    """DDP with SyncBatchNorm."""
    return await _trains(executor, "ddp")


async def zero(executor: LocalExecutor) -> str:
    """ZeroRedundancyOptimizer."""
    return await _trains(executor, "zero")


async def fsdp1(executor: LocalExecutor) -> str:
    """FullyShardedDataParallel."""
    return await _trains(executor, "fsdp1")


async def fsdp2(executor: LocalExecutor) -> str:
    """fully_shard."""
    return await _trains(executor, "fsdp2")


# ------------------------------------------------------------------ memory
def block_bytes(num_bytes: int) -> int:
    """What the allocator takes for a storage."""
    return -(-num_bytes // BLOCK_BYTES) * BLOCK_BYTES


async def allocator(executor: LocalExecutor) -> str:
    """The storages that the tracer sees, rounded up to blocks, are what the allocator counts."""
    done = await ran(executor, "allocator", source_of("allocator"), detail="allocations")
    storages: dict[int, int] = {}
    gaps: list[int] = []
    for event in sorted((e for e in done.events if e.rank == 0), key=lambda e: e.seq):
        if isinstance(event, Allocation):
            storages[event.storage] = 0 if event.action == "free" else event.num_bytes
        if isinstance(event, Memory) and event.allocated_bytes is not None:
            assert sum(storages.values()) == event.total_bytes
            gaps.append(event.allocated_bytes - sum(map(block_bytes, storages.values())))
    assert gaps, "no reading of memory"
    # nccl's group and Adam's scalars may hold a few blocks that no op of the program made.
    assert 0 <= min(gaps) <= max(gaps) <= 16 * BLOCK_BYTES, gaps
    seen = ", ".join(" ".join(line.split()) for line in done.text().splitlines()[1:])
    return f"{len(gaps)} readings differ by {min(gaps)} to {max(gaps)} bytes; host: {seen}"


# ------------------------------------------------------------------ the choice
async def auto_takes_the_gpu(executor: LocalExecutor) -> str:
    """One rank runs on the GPU unless it is told otherwise."""
    source = "import torch\nprint(torch.cuda.is_available(), torch.cuda.device_count())\n"
    found = {}
    devices: tuple[Device, ...] = ("auto", "cuda", "cpu")
    for device in devices:
        done = await ran(executor, f"one-{device}", source, device=device)
        found[device] = (done.started.device, done.text().split()[0])
    assert found == {"auto": ("cuda", "True"), "cuda": ("cuda", "True"), "cpu": ("cpu", "False")}
    return str(found)


async def too_few_gpus(executor: LocalExecutor) -> str:
    """With more ranks than GPUs auto takes CPU and says so, and cuda is refused."""
    ranks = len(find_gpus(os.environ)) + 1
    done = await ran(executor, "too-few", "print(1)\n", ranks=ranks, device="auto")
    assert done.started.device == "cpu"
    assert [event.code for event in done.events if isinstance(event, Note)] == ["auto-took-cpu"]
    try:
        await ran(executor, "refused", "print(1)\n", ranks=ranks)
    except DeviceUnavailable as error:
        return f"{error.code}: {error}"
    raise AssertionError(f"{ranks} ranks were taken")


async def memory_stays_within_its_share(executor: LocalExecutor) -> str:
    """Tensors that would fill the GPU fail at the limit, with a diagnosis that names it."""
    source = (
        "import torch\ntotal = torch.cuda.get_device_properties(0).total_memory\n"
        "kept = torch.empty(total // 3, dtype=torch.uint8, device='cuda')\n"
        "print('a third fits', flush=True)\n"
        "more = torch.empty(total // 2, dtype=torch.uint8, device='cuda')\n"
    )
    limits = Limits(gpu_memory_fraction=0.5)
    program = Program(source=source, world_size=1, device="cuda", limits=limits)
    done = await ended(executor, "share", program)
    assert done.text() == "a third fits\n"
    assert done.outcome.status == "out_of_memory", done.outcome
    (diagnosis,) = done.outcome.diagnosis
    assert diagnosis.code == "gpu-out-of-memory"
    assert diagnosis.args["percent"] == 50
    return diagnosis.message


async def stops_at_its_wall_limit(executor: LocalExecutor) -> str:
    """A GPU that never comes back is stopped with its run, and the next run gets it."""
    source = (
        "import torch\nx = torch.ones(4096, 4096, device='cuda')\nprint('on', flush=True)\n"
        "while True: x = x @ x / 4096\n"
    )
    limits = Limits(wall_s=12.0, cpu_s=60)
    program = Program(source=source, world_size=1, device="cuda", limits=limits)
    done = await ended(executor, "endless", program)
    assert (done.outcome.status, done.outcome.limit) == ("timeout", "wall"), done.outcome
    after = await ran(executor, "after", "import torch\nprint(torch.ones(2, device='cuda'))\n")
    return f"stopped after {done.outcome.elapsed_s:.1f} s, then {after.text().strip()}"


# ------------------------------------------------------------------ SyncBatchNorm, a check only
def _shared(world_size: int) -> str:
    """Stock SyncBatchNorm on CUDA against our kernels on CPU, by gloo ranks on one GPU."""
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / "shared.py")],
            env={
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(PORT + world_size),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world_size)
    ]
    try:
        said = [rank.communicate(timeout=SHARED_DEADLINE_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    failed = [err[-500:] for rank, (_, err) in zip(ranks, said, strict=True) if rank.returncode]
    assert not failed, failed[0]
    worst: dict[str, float] = {}
    for line in said[0][0].splitlines():
        told = json.loads(line)
        limit = TOLERANCE.get(told["dtype"], HALF_TOLERANCE)
        limit = FAR_MEAN_TOLERANCE if told["case"] == "mean 1e4" else limit
        assert told["gap"] <= limit, told
        worst[told["dtype"]] = max(worst.get(told["dtype"], 0.0), told["gap"])
    assert len(worst) == 4, worst
    return ", ".join(f"{name.removeprefix('torch.')} {gap:.1e}" for name, gap in worst.items())


def shared_by_2() -> str:
    """2 gloo ranks on one GPU."""
    return _shared(2)


def shared_by_4() -> str:
    """4 gloo ranks on one GPU."""
    return _shared(4)


BESIDE: tuple[Callable[[], str], ...] = (shared_by_2, shared_by_4)
"""Checks without the engine."""
CHECKS: tuple[Check, ...] = (
    auto_takes_the_gpu,
    ddp,
    zero,
    fsdp1,
    fsdp2,
    allocator,
    too_few_gpus,
    memory_stays_within_its_share,
    stops_at_its_wall_limit,
)
"""Checks in the engine."""
