"""What runs compute on: GPUs counted, chosen, refused, held; and what their ranks can reach.

None of this needs a GPU. Where a machine is said to have some, ranks go the way of ranks on GPUs
up to CUDA itself; the checks of CUDA are in tests/gpu.
"""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.devices import (
    Gpus,
    choose_device,
    decode_gpus,
    encode_gpus,
    find_gpus,
    has_too_few_gpus,
    on_gpus,
    visible_devices,
)
from engine.errors import DeviceUnavailable
from engine.events import Note, Outcome, Started
from engine.executor import Queued, RunRef, StreamItem
from engine.executor.gpus import GpuPool
from engine.executor.local import LocalExecutor
from engine.executor.slots import clean_environment
from engine.program import Device, Program
from engine.sandbox.gpus import COVERED
from engine.tracers.cuda_ends import CudaEnds
from tests.engine.conftest import Ran, Runner, collect
from tests.engine.walled import Sight

ROOT = Path(__file__).parents[2]
HELLO = 'print("hello")\n'
FOR_EVER = "print('here', flush=True)\nwhile True: pass\n"


def program(ranks: int, device: Device = "auto", *, simulated: int | None = None) -> Program:
    return Program(source=HELLO, world_size=ranks, device=device, simulated_ranks=simulated)


# ------------------------------------------------------------------ counting
def device_files(folder: Path, *names: str) -> Path:
    """A stand-in for /dev: each name leads to a real character device."""
    for name in names:
        (folder / name).symlink_to("/dev/null")
    return folder


def test_gpus_are_the_numbered_device_files_of_the_driver(tmp_path: Path) -> None:
    dev = device_files(tmp_path, "nvidiactl", "nvidia-uvm", "nvidia10", "nvidia0", "nvidia3")
    (dev / "nvidia-caps").mkdir()
    (dev / "nvidia7").write_text("no device")
    (dev / "nvidia8").symlink_to("/nowhere")
    assert find_gpus({}, dev) == (0, 3, 10)


@pytest.mark.parametrize("missing", ["nvidiactl", "nvidia-uvm"])
def test_gpus_without_their_driver_are_none(tmp_path: Path, missing: str) -> None:
    names = {"nvidiactl", "nvidia-uvm", "nvidia0"} - {missing}
    assert find_gpus({}, device_files(tmp_path, *names)) == ()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("0,1,2", (0, 1, 4)),
        ("2", (4,)),
        ("1, 0", (0, 1)),
        ("", ()),
        ("-1", ()),
        ("0,9,1", (0,)),
        ("GPU-8932f937", ()),
        ("²", ()),
    ],
)
def test_operator_keeps_gpus_from_runs_by_cuda_visible_devices(
    tmp_path: Path, wanted: str, found: tuple[int, ...]
) -> None:
    names = ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia4")
    dev = device_files(tmp_path, *names)
    assert find_gpus({"CUDA_VISIBLE_DEVICES": wanted}, dev) == found


def test_warm_parent_of_cpu_ranks_sees_no_gpu_and_that_of_gpu_ranks_all() -> None:
    own = {"CUDA_VISIBLE_DEVICES": "1", "PATH": "/own"}
    assert clean_environment(own)["CUDA_VISIBLE_DEVICES"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in clean_environment(own, "cuda")


# ------------------------------------------------------------------ choosing
@pytest.mark.parametrize(
    ("ranks", "device", "num_gpus", "chosen", "is_said"),
    [
        (1, "auto", 0, "cpu", False),
        (2, "auto", 1, "cpu", True),
        (1, "auto", 1, "cuda", False),
        (2, "auto", 4, "cuda", False),
        (2, "cuda", 2, "cuda", False),
        (2, "cpu", 1, "cpu", False),
        (1, "cpu", 8, "cpu", False),
    ],
)
def test_each_rank_gets_a_gpu_or_none_does(
    ranks: int, device: Device, num_gpus: int, chosen: str, is_said: bool
) -> None:
    gpus = Gpus(numbers=tuple(range(num_gpus)))
    assert choose_device(program(ranks, device), gpus) == chosen
    assert has_too_few_gpus(program(ranks, device), gpus) is is_said


@pytest.mark.parametrize(
    ("gpus", "code", "num_gpus"),
    [
        (Gpus(), "cuda-no-gpu", 0),
        (Gpus(is_cuda_built=False), "cuda-no-gpu", 0),
        (Gpus(numbers=(0, 1)), "cuda-too-few-gpus", 2),
        (Gpus(numbers=(0, 1, 2, 3), is_cuda_built=False), "cuda-not-built", 4),
    ],
)
def test_refusal_says_how_many_gpus_and_ranks(gpus: Gpus, code: str, num_gpus: int) -> None:
    with pytest.raises(DeviceUnavailable) as caught:
        choose_device(program(3, "cuda"), gpus)
    assert (caught.value.code, caught.value.said) == (code, {"ranks": 3, "gpus": num_gpus})
    assert "ranks: 3" in str(caught.value)
    assert f"{num_gpus})" in str(caught.value)


def test_torch_without_cuda_takes_cpu_silently() -> None:
    gpus = Gpus(numbers=(0, 1, 2, 3), is_cuda_built=False)
    assert choose_device(program(2), gpus) == "cpu"
    assert not has_too_few_gpus(program(2), gpus)


def test_simulation_needs_no_gpu() -> None:
    simulated = program(1, "auto", simulated=1024)
    assert choose_device(simulated, Gpus(numbers=(0,))) == "cpu"
    assert not has_too_few_gpus(simulated, Gpus(numbers=(0,)))


def test_gpu_ranks_have_room_in_host_memory_for_cuda_itself() -> None:
    asked = program(2, "auto")
    placed = on_gpus(asked)
    assert placed.device == "cuda"
    assert placed.limits.memory_bytes == asked.limits.memory_bytes + 2 * (2 << 30)
    assert replace(placed, device="auto", limits=asked.limits) == asked


def test_ranks_number_the_gpus_of_their_run_from_0_where_they_see_no_other() -> None:
    assert visible_devices((2, 5), is_walled=True) == "0,1"
    assert visible_devices((2, 5), is_walled=False) == "2,5"
    assert visible_devices((), is_walled=True) == ""


@pytest.mark.parametrize("gpus", [(), (0,), (3, 17), tuple(range(32))])
def test_request_for_a_sandbox_names_its_gpus(gpus: tuple[int, ...]) -> None:
    assert decode_gpus(encode_gpus(gpus)) == gpus


# ------------------------------------------------------------------ holding
def test_gpu_belongs_to_one_run_until_it_is_given_back() -> None:
    pool = GpuPool((0, 1, 5))
    first = pool.take(2)
    assert first == (0, 1)
    assert pool.has(1)
    assert not pool.has(2)
    assert pool.take(1) == (5,)
    pool.give_back(first)
    assert pool.take(1) == (0,)


@pytest.fixture(scope="module")
async def with_gpus() -> AsyncIterator[LocalExecutor]:
    """An executor that is told of two GPUs; what runs on them is real up to CUDA itself."""
    executor = LocalExecutor(slots=2, num_parked=0, gpus=Gpus(numbers=(0, 1)))
    await executor.start()
    yield executor
    await executor.close()


async def submit(executor: LocalExecutor, name: str, wanted: Program) -> RunRef:
    ref = RunRef(run_id=name)
    await executor.submit(wanted, ref)
    return ref


async def ran(executor: LocalExecutor, name: str, wanted: Program) -> Ran:
    return await collect(executor, await submit(executor, name, wanted))


def started(ran: Ran) -> Started:
    first = ran.events[0]
    assert isinstance(first, Started)
    return first


async def test_auto_with_too_few_gpus_runs_on_cpu_and_says_so(with_gpus: LocalExecutor) -> None:
    done = await ran(with_gpus, "too-few", program(3))
    assert done.outcome.status == "ok"
    assert started(done).device == "cpu"
    notes = [event for event in done.events if isinstance(event, Note)]
    assert [(note.code, note.rank) for note in notes] == [("auto-took-cpu", -1)]
    assert notes[0].args == {"ranks": 3, "gpus": 2}
    own = [event for event in done.events if event.rank < 0]
    assert [event.seq for event in own] == list(range(len(own)))
    assert done.events[1] is notes[0]


async def test_auto_without_any_gpu_runs_on_cpu_without_a_word(run: Runner) -> None:
    done = await run(HELLO, 2)
    assert started(done).device == "cpu"
    assert not [event for event in done.events if isinstance(event, Note)]


ON_GPUS = """\
import os, torch, torch.distributed as dist
print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["LOCAL_RANK"])
dist.init_process_group("gloo")
try:
    torch.nn.SyncBatchNorm(3)(torch.randn(4, 3))
except ValueError as error:
    print(error)
try:
    print(dist.get_backend(dist.new_group(backend="nccl")))
except RuntimeError as error:
    print("nccl:", error)
"""


async def test_ranks_on_gpus_see_those_of_their_run_and_get_stock_pytorch(
    with_gpus: LocalExecutor,
) -> None:
    done = await ran(with_gpus, "stock", replace(program(2), source=ON_GPUS))
    assert done.outcome.status == "ok", done.outcome
    assert started(done).device == "cuda"
    for rank in range(2):
        visible, refusal, backend = done.text(rank).splitlines()
        assert visible == f"0,1 {rank}"
        assert "SyncBatchNorm expected input tensor to be on" in refusal
        assert backend.startswith("nccl")
        assert "cpuinfo" not in done.text(rank, "stderr")  # torch knows the processor by then
    assert not [event for event in done.events if isinstance(event, Note)]


async def test_program_for_cpu_is_adapted_on_a_machine_with_gpus(with_gpus: LocalExecutor) -> None:
    source = (
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group('nccl')\n"
        "torch.nn.SyncBatchNorm(3)(torch.randn(4, 3))\n"
        "print(dist.get_backend(), repr(os.environ['CUDA_VISIBLE_DEVICES']))\n"
    )
    done = await ran(with_gpus, "adapted", replace(program(2, "cpu"), source=source))
    assert done.outcome.status == "ok", done.outcome
    assert done.text(0) == "gloo ''\n"
    codes = {event.code for event in done.events if isinstance(event, Note)}
    assert codes == {"nccl-to-gloo", "syncbn-on-cpu"}


async def items_until(stream: AsyncIterator[StreamItem], kind: type) -> list[StreamItem]:
    items: list[StreamItem] = []
    async for item in stream:
        items.append(item)
        if isinstance(item, kind):
            break
    return items


async def test_run_waits_for_its_gpus_and_lets_cpu_runs_go_ahead(with_gpus: LocalExecutor) -> None:
    endless = replace(program(2, "cuda"), source=FOR_EVER)
    async with asyncio.timeout(60):
        holder = await submit(with_gpus, "holder", endless)
        holding = with_gpus.stream(holder)
        await items_until(holding, Started)
        waiter = await submit(with_gpus, "waiter", program(1, "cuda"))
        on_cpu = await ran(with_gpus, "on-cpu", program(1, "cpu"))
        assert on_cpu.outcome.status == "ok"
        waiting = with_gpus.stream(waiter)
        assert isinstance(await anext(waiting), Queued)
        await with_gpus.cancel(holder)
        await items_until(holding, Outcome)
        *_, last = await items_until(waiting, Outcome)
    assert isinstance(last, Outcome)
    assert last.status == "ok"


async def test_more_ranks_than_gpus_are_refused_at_once(with_gpus: LocalExecutor) -> None:
    with pytest.raises(DeviceUnavailable):
        await submit(with_gpus, "refused", program(3, "cuda"))


# ------------------------------------------------------------------ reaching
def sight(*nodes: str) -> Sight:
    """What a walled process sees that has these device files as those of its GPUs."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.walled", *nodes],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Sight(**json.loads(done.stdout))


def test_rank_reaches_the_device_files_of_its_gpus_and_what_their_driver_reads() -> None:
    cpu, gpu = sight(), sight("/dev/zero")
    assert set(gpu.devices) - set(cpu.devices) == {"zero"}
    assert set(gpu.writable) - set(COVERED) == {"/dev/zero"}  # what is covered leads nowhere
    assert cpu.writable == []
    assert "/proc/devices" in gpu.readable
    assert "/proc/meminfo" in gpu.readable
    assert "/sys/devices/system/cpu/online" in gpu.readable
    assert cpu.readable == ["/proc/self/status"]


def test_rank_on_gpus_sees_no_more_of_the_machine_than_that() -> None:
    gpu = sight("/dev/zero")
    hidden = {"/proc/keys", "/proc/kallsyms", "/proc/timer_list", "/etc/shadow"}
    hidden |= {"/sys/class/net/lo/address"}
    assert hidden.isdisjoint(gpu.readable)


def test_only_ranks_on_gpus_may_map_shared_memory() -> None:
    assert sight("/dev/zero").has_shared_memory
    assert not sight().has_shared_memory


# ------------------------------------------------------------------ ends of collectives
@dataclass(frozen=True, slots=True, kw_only=True)
class HandPlayedEvent:
    """Comes to pass when the test says so, as one on a GPU's stream when the GPU gets there."""

    passed: threading.Event

    def record(self) -> None:
        assert not self.passed.is_set()

    def synchronize(self) -> None:
        self.passed.wait()


def test_collective_on_gpus_ends_when_its_event_comes_to_pass_not_when_it_is_enqueued() -> None:
    ended: list[int] = []
    arrived = threading.Event()
    events = [HandPlayedEvent(passed=threading.Event()) for _ in range(3)]
    made = iter(events)

    def on_end(number: int) -> None:
        ended.append(number)
        arrived.set()

    ends = CudaEnds(on_end, lambda: next(made))
    ends.enqueued("world", 0)
    ends.enqueued("world", 1)
    ends.enqueued("pair", 2)
    assert ended == []
    events[2].passed.set()
    assert arrived.wait(30)
    assert ended == [2]
    for event in events:
        event.passed.set()
    assert ends.settle(30)
    assert ended == [2, 0, 1]


def test_collective_that_never_ends_on_the_gpu_is_not_waited_for_beyond_the_limit() -> None:
    ends = CudaEnds(lambda _: None, lambda: HandPlayedEvent(passed=threading.Event()))
    ends.enqueued("world", 0)
    assert not ends.settle(0.01)


def test_counting_gpus_imports_no_torch() -> None:
    code = "import sys, engine.devices, engine.executor.local; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
