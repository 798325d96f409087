"""What a run gives back: output, outcome, diagnosis; and that the engine survives all of them."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.events import Collective, Note, Output, Started, Statistic
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.program import Limits, Program
from engine.trace import layer_steps
from engine.wire import decode, encode
from tests.engine.conftest import Runner, collect

GLOO = 'import torch\nimport torch.distributed as dist\ndist.init_process_group("gloo")\n'

SYNC_BATCH_NORM = """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
batch = torch.randn(world_size * 2, 6, dtype=torch.float64) * 3 + 10
mine = batch[rank * 2 : rank * 2 + 2].clone().requires_grad_()
whole = batch.clone().requires_grad_()
model = nn.Sequential(nn.BatchNorm1d(6, dtype=torch.float64))
reference = nn.BatchNorm1d(6, dtype=torch.float64)
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
output, expected = model(mine), reference(whole)
output.square().sum().backward()
expected.square().sum().backward()
here = slice(rank * 2, rank * 2 + 2)
torch.testing.assert_close(output, expected[here], rtol=0, atol=1e-12)
torch.testing.assert_close(mine.grad, whole.grad[here], rtol=0, atol=1e-12)
torch.testing.assert_close(model[0].running_var, reference.running_var, rtol=0, atol=1e-12)
print("equal")
dist.destroy_process_group()
"""


async def test_sync_batch_norm_equals_the_global_batch_on_four_ranks(run: Runner) -> None:
    ran = await run(SYNC_BATCH_NORM, ranks=4)
    assert ran.outcome.status == "ok"
    assert [ran.text(rank) for rank in range(4)] == ["equal\n"] * 4
    assert not ran.outcome.diagnosis


async def test_sync_batch_norm_sends_2c_plus_1_forward_and_2c_backward(run: Runner) -> None:
    ran = await run(SYNC_BATCH_NORM, ranks=4)
    num_channels, value_bytes = 6, 8
    for rank in range(4):
        calls = [c for c in ran.trace.collectives if c.rank == rank]
        assert [(c.op, c.phase, c.input_bytes) for c in calls] == [
            ("all_gather", "forward", (2 * num_channels + 1) * value_bytes),
            ("all_reduce", "backward", 2 * num_channels * value_bytes),
        ]
        assert [c.line for c in calls] == [15, 16]
        assert all(c.duration_ns is not None and c.group_ranks == (0, 1, 2, 3) for c in calls)


async def test_all_ranks_report_the_statistics_of_the_global_batch(run: Runner) -> None:
    ran = await run(SYNC_BATCH_NORM, ranks=4)
    step = next(s for s in layer_steps(ran.trace.statistics) if s.module == "0")
    assert step.batch is not None
    assert step.batch.count == 8
    for rank in range(4):
        assert step.local[rank].mean != pytest.approx(step.batch.mean, rel=1e-6)
        assert step.synced[rank].mean == pytest.approx(step.batch.mean, rel=1e-9)
        assert step.synced[rank].var == pytest.approx(step.batch.var, rel=1e-9)


async def test_adaptation_is_noted_on_every_rank(run: Runner) -> None:
    ran = await run(SYNC_BATCH_NORM, ranks=2)
    notes = {(n.rank, n.code) for n in ran.events if isinstance(n, Note)}
    assert notes == {(0, "syncbn-on-cpu"), (1, "syncbn-on-cpu")}


async def test_nccl_runs_as_gloo_with_a_note(run: Runner) -> None:
    source = GLOO.replace("gloo", "nccl") + "print(dist.get_backend())\n"
    ran = await run(source, ranks=2)
    assert ran.text(1) == "gloo\n"
    assert {n.code for n in ran.trace.notes} == {"nccl-to-gloo"}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("x = torch.ones(2).cuda()", "x = torch.ones(2).to(device)"),
        ('m = torch.nn.Linear(2, 2).to("cuda:0")', "m = torch.nn.Linear(2, 2).to(device)"),
        ("torch.cuda.set_device(0)", "if torch.cuda.is_available(): torch.cuda.set_device(0)"),
        ('x = torch.ones(2, device="cuda")', "x = torch.ones(2, device=device)"),
    ],
)
async def test_cuda_on_cpu_ranks_shows_the_neutral_line(run: Runner, line: str, shown: str) -> None:
    ran = await run(f"import torch\n{line}\n", ranks=2)
    assert ran.outcome.status == "error"
    assert ran.codes[0].endswith("on-cpu-ranks")
    assert ran.outcome.diagnosis[0].line == 2
    assert shown in ran.outcome.diagnosis[0].message


async def test_syntax_error_names_its_line_and_column(run: Runner) -> None:
    ran = await run('print("before")\nx = "あ" +\n', ranks=2)
    assert ran.outcome.status == "error"
    assert ran.codes == ["syntax-error"]
    failure = ran.outcome.ranks[0].failure
    assert failure is not None
    assert (failure.type, failure.line, failure.column) == ("SyntaxError", 2, 9)
    assert "engine" not in ran.text(0, "stderr")


async def test_exception_in_one_rank_shows_its_own_source_line(run: Runner) -> None:
    source = GLOO + (
        "def load(rank):\n"
        '    return {"あ": 0}["い"] if rank == 2 else torch.ones(1)\n'
        "part = load(dist.get_rank())\n"
        "dist.all_reduce(part)\n"
    )
    ran = await run(source, ranks=4)
    assert ran.outcome.status == "error"
    assert ran.outcome.first_failed_rank == 2
    assert ran.codes == ["peers-left-behind"]
    found = ran.outcome.diagnosis[0]
    assert (found.rank, found.line, found.args["type"]) == (2, 5, "KeyError")
    shown = ran.text(2, "stderr")
    assert 'return {"あ": 0}["い"] if rank == 2' in shown
    assert "engine/" not in shown
    failure = ran.outcome.ranks[2].failure
    assert failure is not None
    # Columns count characters, not the bytes that Python's own positions count.
    assert (failure.column, failure.end_column) == (11, 24)
    assert [f.line for f in failure.frames] == [6, 5]


async def test_traceback_through_torch_shows_no_frame_of_the_engine(run: Runner) -> None:
    ran = await run(GLOO + "dist.all_gather([torch.ones(2)], torch.ones(2))\n", ranks=2)
    assert ran.outcome.status == "error"
    shown = ran.text(0, "stderr")
    assert "torch/distributed/distributed_c10d.py" in shown
    assert "engine/" not in shown


async def test_endless_loop_ends_at_the_limit_and_says_where_each_rank_was(run: Runner) -> None:
    source = 'import os\nprint("start")\nif os.environ["RANK"] == "0":\n    while True: pass\n'
    source += "while True:\n    pass\n"
    ran = await run(source, ranks=2, limits=Limits(wall_s=1.0))
    assert (ran.outcome.status, ran.outcome.limit) == ("timeout", "wall")
    assert ran.text(0) == "start\n"
    assert ran.outcome.ranks[0].stack[0].line == 4
    assert ran.outcome.ranks[1].stack[0].line in (5, 6)
    assert "rank 0 on line 4" in ran.outcome.diagnosis[0].message


async def test_ten_megabytes_of_output_end_as_output_limit_and_keep_what_came_before(
    run: Runner,
) -> None:
    ran = await run('print("first")\nfor _ in range(10_000): print("x" * 1023)\n')
    assert (ran.outcome.status, ran.outcome.limit) == ("output_limit", "output")
    assert ran.text(0).startswith("first\nxxx")
    assert len(ran.text(0)) == Limits().shown_bytes
    assert [n.code for n in ran.trace.notes] == ["output-truncated"]
    assert ran.codes == ["output-limit"]


async def test_cut_output_keeps_characters_whole(run: Runner) -> None:
    ran = await run('print("あ" * 200_000)\n', limits=Limits(shown_bytes=1000))
    assert ran.outcome.status == "ok"
    assert ran.text(0).rstrip("\ufffd") == "あ" * 333


async def test_memory_beyond_the_limit_ends_as_out_of_memory(run: Runner) -> None:
    source = "import torch\nheld = []\nwhile True: held.append(torch.ones(4 << 20))\n"
    ran = await run(source, ranks=2, limits=Limits(memory_bytes=200 << 20))
    assert ran.outcome.status == "out_of_memory"
    assert ran.codes in (["memory-limit"], ["out-of-memory"])


async def test_hang_names_the_rank_that_never_came(run: Runner) -> None:
    source = GLOO + (
        "import threading\n"
        "if dist.get_rank() == 2:\n"
        "    threading.Event().wait()\n"
        "dist.all_reduce(torch.ones(1))\n"
    )
    ran = await run(source, ranks=4, limits=Limits(stall_s=0.5))
    assert ran.outcome.status == "deadlock"
    found = ran.outcome.diagnosis[0]
    assert found.code == "busy-elsewhere"
    assert (found.line, found.rank) == (6, 2)
    assert found.args["missing"] == "rank 2"
    assert found.args["op"] == "all_reduce"
    assert "rank 0 in all_reduce on line 7" in found.message
    assert "rank 2 on line 6" in found.message
    waiting = [c for c in ran.trace.collectives if c.duration_ns is None]
    assert {c.rank for c in waiting} == {0, 1, 3}


async def test_a_late_rank_that_only_sleeps_is_waited_for(run: Runner) -> None:
    source = GLOO + (
        'import time\nif dist.get_rank() == 1: time.sleep(1.5)\ndist.barrier()\nprint("all here")\n'
    )
    ran = await run(source, ranks=2, limits=Limits(stall_s=0.4))
    assert ran.outcome.status == "ok", ran.outcome
    assert ran.text(0) == "all here\n"


async def test_ranks_that_come_while_their_stacks_are_looked_at_are_no_hang(run: Runner) -> None:
    source = GLOO + (
        "import time\n"
        "for round in range(12):\n"
        "    if dist.get_rank() == round % 2: time.sleep(0.44 + 0.03 * round)\n"
        "    dist.barrier()\n"
    )
    ran = await run(source, ranks=2, limits=Limits(stall_s=0.4))
    assert ran.outcome.status == "ok", ran.outcome


async def test_a_rank_that_computes_while_others_wait_is_no_hang(run: Runner) -> None:
    source = GLOO + (
        "import time\n"
        "end = time.monotonic() + 1.5\n"
        "while dist.get_rank() == 1 and time.monotonic() < end: pass\n"
        "dist.barrier()\n"
    )
    ran = await run(source, ranks=2, limits=Limits(stall_s=0.4))
    assert ran.outcome.status == "ok"


async def test_exit_code_of_the_program_is_the_ranks(run: Runner) -> None:
    ran = await run("import sys\nsys.exit(3)\n")
    assert (ran.outcome.status, ran.outcome.ranks[0].exit) == ("error", 3)
    assert ran.codes == ["rank-exited"]


async def test_crash_is_told_from_an_exception(run: Runner) -> None:
    ran = await run("import ctypes\nctypes.string_at(0)\n", ranks=2)
    assert ran.outcome.status == "error"
    assert ran.codes == ["rank-killed"]
    assert ran.outcome.diagnosis[0].args["signal"] == "SIGSEGV"


async def test_ranks_draw_different_random_numbers(run: Runner) -> None:
    source = "import random, torch, numpy\n"
    source += "print(torch.initial_seed(), random.random(), numpy.random.rand())\n"
    ran = await run(source, ranks=4)
    for values in zip(*(ran.text(rank).split() for rank in range(4)), strict=True):
        assert len(set(values)) == 4


async def test_program_is_main_and_can_read_its_own_file(run: Runner) -> None:
    source = "import sys\nprint(__name__, __file__, sys.argv)\nprint(open(__file__).read()[:10])\n"
    ran = await run(source)
    assert ran.text(0) == "__main__ /work/program.py ['program.py']\nimport sys\n"


async def test_events_are_numbered_without_gaps_and_end_with_the_outcome(run: Runner) -> None:
    ran = await run(SYNC_BATCH_NORM, ranks=2)
    assert isinstance(ran.events[0], Started)
    for rank in (-1, 0, 1):
        numbers = [e.seq for e in ran.events if e.rank == rank]
        assert numbers == list(range(len(numbers)))
    assert all(0 <= e.at_ns <= ran.outcome.at_ns for e in ran.events)
    for event in ran.events:
        if isinstance(event, Output | Collective | Statistic):
            assert decode(encode(event)) == event
            assert json.loads(encode(event))["kind"] == event.kind


async def test_cancel_stops_a_running_program(executor: LocalExecutor) -> None:
    ref = RunRef(run_id="cancel-running")
    await executor.submit(Program(source='print("on")\nwhile True: pass\n', world_size=2), ref)
    seen = []
    async for item in executor.stream(ref):
        seen.append(item)
        if isinstance(item, Output):
            await executor.cancel(ref)
    assert getattr(seen[-1], "status", None) == "cancelled"


async def test_queue_tells_positions_and_a_waiting_run_can_be_cancelled(
    executor: LocalExecutor,
) -> None:
    loop = Program(source="while True: pass\n", world_size=1, limits=Limits(wall_s=30))
    refs = [RunRef(run_id=f"queue-{number}") for number in range(4)]
    for ref in refs:
        await executor.submit(loop, ref)
    assert (await executor.capacity()).num_queued == 2
    waiting = executor.stream(refs[3])
    first = await anext(waiting)
    assert first == Queued(position=1)
    await executor.cancel(refs[2])
    assert (await collect(executor, refs[2])).outcome.status == "cancelled"
    later = await anext(waiting)
    assert later == Queued(position=0)
    for ref in (refs[0], refs[1], refs[3]):
        await executor.cancel(ref)
    results = await asyncio.gather(collect(executor, refs[0]), collect(executor, refs[1]))
    assert [r.outcome.status for r in results] == ["cancelled", "cancelled"]


async def test_submitting_the_same_reference_twice_runs_once(executor: LocalExecutor) -> None:
    ref = RunRef(run_id="twice")
    program = Program(source='print("once")\n', world_size=1)
    await executor.submit(program, ref)
    await executor.submit(program, ref)
    ran = await collect(executor, ref)
    assert ran.text(0) == "once\n"


async def test_nothing_is_left_on_the_host_after_a_run(run: Runner) -> None:
    marker = "academy-leftover-check"
    source = (
        "import os, subprocess, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setpgid(0, 0)\n"
        f'    os.execv("/bin/sh", ["/bin/sh", "-c", "sleep 600 # {marker}"])\n'
    )
    ran = await run(source)
    assert ran.outcome.status == "ok"
    assert marker not in "".join(await asyncio.to_thread(_command_lines))


AUTOGROUP = Path("/proc/self/autogroup")


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel shares the processor otherwise")
async def test_all_runs_together_count_as_little_as_one_nice_process(run: Runner) -> None:
    source = f'print(open("{AUTOGROUP}").read(), end="")\n'
    shares = {(await run(source, ranks=2)).text(rank) for rank in (0, 1)}
    (share,) = shares | {(await run(source)).text(0)}  # one for all ranks of all runs
    assert share.split()[-2:] == ["nice", "10"]
    own = await asyncio.to_thread(AUTOGROUP.read_text)  # empty in the machine's first session
    assert share.split()[:1] != own.split()[:1]


def _command_lines() -> list[str]:
    return [_read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # the process has just ended
        return ""


def test_engine_process_never_imports_torch() -> None:
    code = "import sys, engine.executor.local, engine.supervisor.park\n"
    code += "print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", sorted(p.stem for p in Path("tests/cells").glob("f_*.py")))
async def test_pasted_snippet_runs(run: Runner, name: str) -> None:
    source = (Path(__file__).parents[1] / "cells" / f"{name}.py").read_text(encoding="utf-8")
    ran = await run(source, ranks=2)
    assert ran.outcome.status == "ok"
    assert ran.trace.notes
