"""Programs that attack the engine's judgement: limits, outcomes, the end of a rank, its reports."""

import asyncio

import pytest

from engine.events import Collective, Note
from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.program import Limits, Program
from tests.engine.conftest import Runner, collect

GLOO = 'import torch\nimport torch.distributed as dist\ndist.init_process_group("gloo")\n'
HOLD = "held = bytearray(120 << 20)\nfor i in range(0, len(held), 4096): held[i] = 1\n"
SMALL = Limits(memory_bytes=200 << 20, wall_s=10)


# ------------------------------------------------------------------ memory
@pytest.mark.parametrize(
    "source",
    [
        # children of another thread than the main one
        "import os, threading, time\n"
        "def child():\n"
        "    if os.fork() == 0:\n"
        f"        {HOLD.splitlines()[0]}\n"
        f"        {HOLD.splitlines()[1]}\n"
        "        time.sleep(60)\n"
        "for _ in range(3): threading.Thread(target=child).start()\n"
        "time.sleep(60)\n",
        # executed programs share nothing with the zygote, so nothing is taken off for them
        "import subprocess, sys, time\n"
        f"code = {HOLD + 'import time; time.sleep(60)'!r}\n"
        'for _ in range(3): subprocess.Popen([sys.executable, "-S", "-c", code])\n'
        "time.sleep(60)\n",
        # a link cannot lend an executed program the name of a rank
        "import os, subprocess, sys, time\n"
        'os.symlink(sys.executable, "rank")\n'
        f"code = {HOLD + 'import time; time.sleep(60)'!r}\n"
        'for _ in range(3): subprocess.Popen(["./rank", "-S", "-c", code], executable="./rank")\n'
        "time.sleep(60)\n",
    ],
    ids=["threads", "executed", "renamed"],
)
async def test_memory_of_every_process_of_a_run_counts(run: Runner, source: str) -> None:
    ran = await run(source, limits=SMALL)
    assert (ran.outcome.status, ran.outcome.limit) == ("out_of_memory", "memory")


async def test_shared_memory_without_a_file_is_not_to_be_had(run: Runner) -> None:
    source = (
        "import mmap, os\n"
        'for path in ("/dev/zero", "/dev/full"):\n'
        "    try:\n"
        "        mmap.mmap(os.open(path, os.O_RDWR), 4096)\n"
        '        print("mapped", path)\n'
        "    except OSError:\n"
        '        print("refused")\n'
        "try:\n"
        "    mmap.mmap(-1, 4096)\n"
        '    print("mapped anonymous")\n'
        "except OSError:\n"
        '    print("refused")\n'
    )
    ran = await run(source)
    assert ran.text(0) == "refused\n" * 3


async def test_rank_cannot_rename_itself(run: Runner) -> None:
    source = (
        "import ctypes\n"
        'print(ctypes.CDLL(None).prctl(15, b"other", 0, 0, 0))\n'
        "try:\n"
        '    open("/proc/self/comm", "w").write("other")\n'
        "except OSError:\n"
        '    print("refused")\n'
    )
    ran = await run(source)
    assert ran.text(0) == "-1\nrefused\n"


# ------------------------------------------------------------------ limits
async def test_wall_limit_holds_when_a_stall_check_falls_next_to_it(run: Runner) -> None:
    source = "import time\ntime.sleep(60)\n"
    for wall_s in (0.55, 0.65, 0.75):
        ran = await run(source, ranks=2, limits=Limits(wall_s=wall_s, stall_s=0.5))
        assert (ran.outcome.status, ran.outcome.limit) == ("timeout", "wall")


async def test_flood_of_trace_ends_at_a_limit(run: Runner) -> None:
    source = (
        "import fcntl, os\n"
        "try: fcntl.fcntl(3, 1031, 1 << 20)\n"
        'except OSError: print("refused", flush=True)\n'
        'while True: os.write(3, b"\\n" * 65536)\n'
    )
    ran = await run(source, ranks=4, limits=Limits(wall_s=15))
    assert (ran.outcome.status, ran.outcome.limit) == ("output_limit", "trace")
    assert ran.text(0) == "refused\n"


async def test_more_events_than_the_limit_stop_the_run_and_what_came_before_is_kept(
    run: Runner,
) -> None:
    source = GLOO + "for _ in range(10_000): dist.all_reduce(torch.ones(1))\n"
    ran = await run(source, ranks=2, limits=Limits(trace_events=500))
    assert (ran.outcome.status, ran.outcome.limit) == ("output_limit", "trace")
    assert ran.codes == ["trace-limit"]
    assert len([e for e in ran.events if isinstance(e, Collective)]) > 100


async def test_rank_cannot_flood_the_page_with_notes_or_speak_as_the_engine(run: Runner) -> None:
    source = (
        "import json, os\n"
        "def note(code, **args):\n"
        '    line = {"kind": "note", "at_ns": 1, "code": code, "args": args}\n'
        '    os.write(3, json.dumps(line).encode() + b"\\n")\n'
        'note("unsandboxed")\n'
        'note("events-dropped", count=5, rank=0)\n'
        'for number in range(5000): note("nccl-to-gloo", backend=str(number))\n'
    )
    ran = await run(source)
    codes = [e.code for e in ran.events if isinstance(e, Note)]
    assert "unsandboxed" not in codes
    assert codes.count("nccl-to-gloo") <= 32
    assert codes.count("events-dropped") == 1


# ------------------------------------------------------------------ outcomes
async def test_forged_stack_dump_does_not_hurt_the_supervisor(run: Runner) -> None:
    source = (
        "import os, time\n"
        "text = b'Thread 0x1 (most recent call first):\\n  File \"/work/program.py\", line '\n"
        "os.write(4, text + b'9' * 5000 + b' in f\\n')\n"
        "os.write(4, text + '\\u0663'.encode() + b' in f\\n')\n"
    )
    ran = await run(source)
    assert ran.outcome.status == "ok"


async def test_cancelled_at_once_is_cancelled(executor: LocalExecutor) -> None:
    for number in range(6):
        ref = RunRef(run_id=f"at-once-{number}")
        await executor.submit(Program(source="while True: pass\n", world_size=1), ref)
        for _ in range(number):
            await asyncio.sleep(0)
        await executor.cancel(ref)
        async with asyncio.timeout(15):
            assert (await collect(executor, ref)).outcome.status == "cancelled"


async def test_rank_that_ends_early_is_named_and_not_those_who_noticed(run: Runner) -> None:
    source = GLOO + "if dist.get_rank() != 1:\n    dist.all_reduce(torch.ones(1))\n"
    ran = await run(source, ranks=4)
    assert ran.outcome.status == "error"
    assert ran.codes == ["branch-not-entered"]
    found = ran.outcome.diagnosis[0]
    assert (found.line, found.args["at"]) == (5, 4)
    assert "but rank 1 never joined it" in found.message
    assert "rank 1 had ended" in found.message
    assert found.args["op"] == "all_reduce"


async def test_program_that_wants_the_network_is_told_there_is_none(run: Runner) -> None:
    source = 'import urllib.request\nurllib.request.urlopen("http://example.invalid/")\n'
    ran = await run(source)
    assert ran.codes == ["no-network"]
    assert ran.outcome.diagnosis[0].line == 2


# ------------------------------------------------------------------ the end of a rank
ENDINGS = [
    ("no stdout", "import sys\nsys.stdout = None\n", "ok"),
    ("str raises", "class E(Exception):\n    def __str__(self): raise OSError\nraise E\n", "error"),
    ("str exits", "class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E\n",
     "error"),
    ("str gives a number", "class E(Exception):\n    def __str__(self): return 3\nraise E\n",
     "error"),
    ("hook raises", "import sys\nsys.excepthook = lambda *a: 1 / 0\nraise ValueError('x')\n",
     "error"),
    ("exit with an object", "import sys\nclass E:\n    def __str__(self): raise OSError\n"
     "sys.exit(E())\n", "error"),
    ("flush raises", "import sys\nclass S:\n    def flush(self): raise SystemExit(0)\n"
     "    def write(self, t): pass\nsys.stdout = S()\n", "error"),
    ("os.write replaced", "import os\nos.write = lambda *a: 1 / 0\nprint(1)\n", "ok"),
    ("os._exit replaced", "import os\nos._exit = lambda code: None\nraise ValueError\n", "error"),
    ("exit code too large", "import sys\nsys.exit(10 ** 30)\n", "error"),
    ("atexit exits", "import atexit, sys\natexit.register(lambda: sys.exit(4))\n", "ok"),
    ("byte order mark", "\ufeffprint(1)\n", "ok"),
    ("surrogate in a message", 'raise ValueError("\\ud800")\n', "error"),
    ("long type name", 'raise type("E" * 5000, (Exception,), {})("x")\n', "error"),
    ("huge message", 'raise ValueError("x" * 1_000_000)\n', "error"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "status"), [row[1:] for row in ENDINGS], ids=[row[0] for row in ENDINGS]
)
async def test_end_of_a_rank_is_the_interpreters_without_a_word_of_the_engine(
    run: Runner, source: str, status: str
) -> None:
    ran = await run(source)
    assert ran.outcome.status == status
    assert "engine" not in ran.text(0, "stderr")
    assert ran.outcome.dropped_events == 0
    failure = ran.outcome.ranks[0].failure
    if "raise ValueError" in source or "raise E" in source or "raise type" in source:
        assert failure is not None
        assert failure.line is not None
        assert ran.codes == ["exception"]
