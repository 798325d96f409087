"""What a run may take: memory, processes, CPU time; which layer bounds it; what is left."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.facts import Args
from engine.program import MIB, Limits, Program
from engine.sandbox.cgroups import PREFIX, GroupPlace, find_place, make_group, sweep
from engine.sandbox.choice import Layer, SandboxChoice
from engine.sandbox.linux import children_of
from tests.engine.conftest import Ran, Runner, collect

SMALL = Limits(memory_bytes=200 * MIB, wall_s=15)
NUMBERS = count()
FILL = (
    "import os, time\n"
    "def fill(num_mib):\n"
    "    held = bytearray(num_mib << 20)\n"
    "    for at in range(0, len(held), 4096): held[at] = 1\n"
    "    return held\n"
)
BOMBS = {
    "one process": FILL + "held = [fill(50) for _ in range(40)]\ntime.sleep(60)\n",
    "many processes": FILL
    + "for _ in range(12):\n"
    + "    if os.fork() == 0:\n"
    + "        held = fill(60)\n"
    + "        time.sleep(60)\n"
    + "time.sleep(60)\n",
}


def place_or_skip() -> GroupPlace:
    try:
        return find_place()
    except OSError as error:
        pytest.skip(f"this machine grants no control group: {error}")


async def opened(*without: Layer) -> AsyncIterator[LocalExecutor]:
    choice = SandboxChoice(at_most="walled", without=frozenset(without))
    executor = LocalExecutor(slots=1, num_parked=1, sandbox=choice)
    await executor.start()
    yield executor
    await executor.close()


@pytest.fixture(scope="module")
async def group_alone() -> AsyncIterator[LocalExecutor]:
    place_or_skip()
    async for executor in opened("watchdog", "rlimits"):
        yield executor


@pytest.fixture(scope="module")
async def watchdog_alone() -> AsyncIterator[LocalExecutor]:
    async for executor in opened("cgroup", "rlimits"):
        yield executor


async def ran(
    executor: LocalExecutor, source: str, ranks: int = 1, limits: Limits | None = None
) -> Ran:
    ref = RunRef(run_id=f"resources-{next(NUMBERS)}")
    program = Program(source=source, world_size=ranks, limits=limits or Limits())
    await executor.submit(program, ref)
    return await collect(executor, ref)


# ------------------------------------------------------------------ memory
@pytest.mark.parametrize("bomb", BOMBS)
async def test_the_control_group_alone_stops_a_memory_bomb(
    group_alone: LocalExecutor, bomb: str
) -> None:
    done = await ran(group_alone, BOMBS[bomb], limits=SMALL)
    assert (done.outcome.status, done.outcome.limit) == ("out_of_memory", "memory")
    assert done.codes == ["memory-limit"]
    assert done.outcome.diagnosis[0].args == {"limit_mib": 200}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_the_watchdog_alone_stops_a_memory_bomb(
    watchdog_alone: LocalExecutor, bomb: str
) -> None:
    done = await ran(watchdog_alone, BOMBS[bomb], limits=SMALL)
    assert (done.outcome.status, done.outcome.limit) == ("out_of_memory", "memory")
    assert done.outcome.diagnosis[0].args == {"limit_mib": 200}


async def test_a_process_that_is_killed_by_the_program_is_no_lack_of_memory(
    group_alone: LocalExecutor,
) -> None:
    source = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    done = await ran(group_alone, source, limits=SMALL)
    assert (done.outcome.status, done.outcome.limit) == ("error", None)
    assert done.codes == ["rank-killed"]


async def test_processes_are_bounded_by_the_control_group_alone(
    group_alone: LocalExecutor,
) -> None:
    source = (
        "import threading\n"
        "going = threading.Event()\n"
        "started = 0\n"
        "try:\n"
        "    while started < 1000:\n"
        "        threading.Thread(target=going.wait, daemon=True).start()\n"
        "        started += 1\n"
        "except RuntimeError:\n"
        "    pass\n"
        "going.set()\n"
        "print(started)\n"
    )
    done = await ran(group_alone, source)
    assert done.outcome.status == "ok"
    assert 100 < int(done.text(0)) < 150


# ------------------------------------------------------------------ what is left
def groups_of(place: GroupPlace, owner: int) -> list[Path]:
    return [
        path
        for folder in place.folders
        for path in folder.glob(f"{PREFIX}*")
        if path.name.split("-")[3] == str(owner)
    ]


async def test_a_run_has_a_control_group_and_leaves_none() -> None:
    place = place_or_skip()
    async for executor in opened():
        ref = RunRef(run_id="left")
        await executor.submit(Program(source="print(1)\n", world_size=2), ref)
        zygote = executor._warm.pid
        assert zygote
        owners = children_of(zygote)
        assert any(groups_of(place, owner) for owner in owners)
        assert (await collect(executor, ref)).outcome.status == "ok"
    assert not any(groups_of(place, owner) for owner in owners)


def test_groups_of_the_dead_are_swept_and_those_of_the_living_stay() -> None:
    place = place_or_skip()
    script = (
        "import os\n"
        "from engine.sandbox.cgroups import find_place, make_group\n"
        "print(make_group(find_place()).folders[0].name, flush=True)\n"
        "input()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    name = owner.stdout.readline().strip()
    own = make_group(place)
    try:
        sweep(place)
        assert (place.folders[0] / name).exists()
        os.kill(owner.pid, signal.SIGKILL)
        owner.communicate()
        assert all((folder / name).exists() for folder in place.folders)
        sweep(place)
        assert not any((folder / name).exists() for folder in place.folders)
        assert all(folder.exists() for folder in own.folders)
    finally:
        own.remove()
    assert not any(folder.exists() for folder in own.folders)


# ------------------------------------------------------------------ calls that fail at a limit
GLOO = 'import torch.distributed as dist\ndist.init_process_group("gloo")\n'
AT_A_LIMIT = [
    (
        "threads",
        "import threading\n"
        "going = threading.Event()\n"
        "def start(): threading.Thread(target=going.wait, daemon=True).start()\n"
        "for _ in range(1000): start()\n",
        1,
        ("process-limit", 3, {"limit": 128}),
    ),
    (
        "forks",
        "import os, time\nfor _ in range(1000):\n    if os.fork() == 0:\n        time.sleep(60)\n",
        1,
        ("process-limit", 3, {"limit": 128}),
    ),
    (
        "groups",
        GLOO + "groups = [dist.new_group([0, 1]) for _ in range(60)]\n",
        2,
        ("process-limit", 3, {"limit": 192}),
    ),
    (
        "files",
        'held = []\nwhile True:\n    held.append(open("/dev/null"))\n',
        1,
        ("descriptor-limit", 3, {"limit": 512}),
    ),
    (
        "wrapped",
        "import socket\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(socket.socketpair())\n"
        "except OSError as error:\n"
        '    raise ValueError("no more") from error\n',
        1,
        ("descriptor-limit", 6, {"limit": 512}),
    ),
    (
        "one large file",
        'file = open("large", "wb")\nfile.truncate(65 << 20)\n',
        1,
        ("file-size-limit", 2, {"limit_mib": 64}),
    ),
    (
        "bytes",
        'for name in ("/tmp/a", "/dev/shm/b"):\n'
        '    with open(name, "wb") as file: file.write(bytes(40 << 20))\n',
        1,
        ("scratch-full", 2, {"limit_mib": 64}),
    ),
    (
        "torch.save",
        'import torch\ntorch.save(torch.zeros(20 << 20), "model.pt")\n',
        1,
        ("scratch-full", 2, {"limit_mib": 64}),
    ),
    (
        "inodes",
        'for number in range(5000):\n    open(str(number), "w").close()\n',
        1,
        ("scratch-files-full", 2, {"limit": 4096}),
    ),
]


@pytest.mark.parametrize(
    ("source", "ranks", "said"), [row[1:] for row in AT_A_LIMIT], ids=[row[0] for row in AT_A_LIMIT]
)
async def test_program_that_fails_at_a_limit_is_told_which(
    run: Runner, source: str, ranks: int, said: tuple[str, int, Args]
) -> None:
    done = await run(source, ranks=ranks)
    assert done.outcome.status == "error"
    found = done.outcome.diagnosis[0]
    assert (found.code, found.line) == said[:2]
    assert {name: found.args[name] for name in said[2]} == said[2]
    assert str(next(iter(said[2].values()))) in found.message


NOT_AT_A_LIMIT = [
    (
        "caught",
        "held = []\n"
        "try:\n"
        '    while True: held.append(open("/dev/null"))\n'
        "except OSError:\n"
        "    held.clear()\n"
        'raise KeyError("mine")\n',
        "KeyError",
    ),
    (
        "raised by hand",
        'import errno\nraise OSError(errno.EMFILE, "Too many open files")\n',
        "OSError",
    ),
    ("said by hand", 'raise RuntimeError("can\'t start new thread")\n', "RuntimeError"),
    (
        "nothing to read",
        "import socket\n"
        "ours, theirs = socket.socketpair()\n"
        "ours.setblocking(False)\n"
        "ours.recv(1)\n",
        "BlockingIOError",
    ),
    ("always full", "import os\nos.write(os.open('/dev/full', os.O_WRONLY), b'x')\n", "OSError"),
]


@pytest.mark.parametrize(
    ("source", "kind"), [row[1:] for row in NOT_AT_A_LIMIT], ids=[row[0] for row in NOT_AT_A_LIMIT]
)
async def test_error_that_no_limit_has_caused_is_shown_as_it_is(
    run: Runner, source: str, kind: str
) -> None:
    done = await run(source)
    assert done.codes == ["exception"]
    assert done.outcome.diagnosis[0].args["type"] == kind


async def test_program_that_goes_on_after_a_limit_is_told_nothing(run: Runner) -> None:
    source = (
        "held = []\n"
        "try:\n"
        '    while True: held.append(open("/dev/null"))\n'
        "except OSError:\n"
        "    held.clear()\n"
    )
    done = await run(source)
    assert (done.outcome.status, done.codes) == ("ok", [])


# ------------------------------------------------------------------ CPU time
async def test_cpu_time_of_all_processes_counts_together(run: Runner) -> None:
    source = "import os\nfor _ in range(3): os.fork()\nwhile True: pass\n"
    done = await run(source, limits=Limits(cpu_s=2, wall_s=15))
    assert (done.outcome.status, done.outcome.limit) == ("timeout", "cpu")
    assert done.codes == ["cpu-limit-together"]
    assert done.outcome.diagnosis[0].args == {"limit_s": 2}


async def test_cpu_time_of_one_rank_is_bounded_by_the_kernel_too(
    group_alone: LocalExecutor, watchdog_alone: LocalExecutor
) -> None:
    limits = Limits(cpu_s=1, wall_s=10)
    done = await ran(watchdog_alone, "while True: pass\n", limits=limits)
    assert (done.outcome.status, done.outcome.limit) == ("timeout", "cpu")
    done = await ran(group_alone, "while True: pass\n", limits=limits)
    assert (done.outcome.status, done.outcome.limit) == ("timeout", "wall")


async def test_signal_that_a_program_sends_itself_is_no_lack_of_cpu_time(run: Runner) -> None:
    done = await run("import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)\n")
    assert (done.outcome.status, done.outcome.limit) == ("error", None)
    assert done.outcome.ranks[0].exit == -signal.SIGXCPU
