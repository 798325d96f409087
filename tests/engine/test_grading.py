"""Graded runs: real programs, and real checks in fresh processes."""

import logging
import re
from pathlib import Path

import pytest

from engine.events import Outcome, Verdict
from engine.executor import RunRef
from engine.executor.checks import judged
from engine.executor.local import LocalExecutor
from engine.executor.runs import SubmittedRun, bare_outcome
from engine.grading_messages import PROBLEMS, RESULTS
from engine.program import Check, Limits, Program
from engine.wire import decode, encode
from tests.engine.conftest import collect
from tests.engine.graded import GLOO, LOOKS_AT_NOTHING_SPECIAL, WANTS_THREE, grade

GUIDE = Path(__file__).parents[2] / "docs" / "grading.md"
SUM = GLOO + "w = torch.ones(4) * (dist.get_rank() + 1)\ndist.all_reduce(w)\n"


# ------------------------------------------------------------------ verdicts
async def test_right_program_passes_and_its_verdict_comes_just_before_the_outcome(
    executor: LocalExecutor,
) -> None:
    graded = await grade(executor, SUM, WANTS_THREE, ranks=2)
    assert graded.verdict.is_passed
    assert [r.id for r in graded.verdict.results] == ["sum-0", "sum-1"]
    assert decode(encode(graded.verdict)) == graded.verdict


async def test_example_of_the_documentation_passes(executor: LocalExecutor) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    program, check, accepts = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    right = await grade(executor, program, check, exports=("total",), ranks=2)
    wrong = await grade(executor, program, check + accepts, exports=("total",), ranks=2)
    assert right.verdict.is_passed, right.verdict
    assert [result.code for result in wrong.verdict.results] == ["run-not-accepted"]


def test_documentation_names_every_code_of_a_problem_and_of_a_contradiction() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    codes = [*PROBLEMS, *(code for code in RESULTS if code.startswith("trace-"))]
    assert [code for code in codes if f"`{code}`" not in text] == []


async def test_wrong_program_does_not_pass_and_says_what_fails(executor: LocalExecutor) -> None:
    graded = await grade(executor, SUM.replace("+ 1", "+ 2"), WANTS_THREE, ranks=2)
    assert not graded.verdict.is_passed
    assert graded.failed == ["sum-0", "sum-1"]
    assert graded.verdict.results[0].message == "The sum is wrong."


async def test_every_kind_of_value_arrives_as_it_was(executor: LocalExecutor) -> None:
    source = (
        "import numpy, torch\n"
        "from torch import nn\n"
        'w = {"none": None, "bools": [True, False], "pair": (1, -2.5), 3: "\\u8a9e"}\n'
        'w["big"] = 1 << 80\n'
        "half = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16).t()\n"
        "flags = torch.tensor([True, False])\n"
        "empty = torch.empty(0, 3)\n"
        "scalar = torch.tensor(7, dtype=torch.int64)\n"
        "conjugate = torch.tensor([1 + 2j]).conj()\n"
        "weight = nn.Parameter(torch.arange(3.0))\n"
        "array = numpy.arange(4, dtype='int32')\n"
        "number = numpy.float64(0.5)\n"
        "model = nn.Linear(1, 1)\n"
        "sparse = torch.eye(2).to_sparse()\n"
    )
    names = [
        "half",
        "flags",
        "empty",
        "scalar",
        "conjugate",
        "weight",
        "array",
        "number",
        "model",
        "sparse",
        "absent",
    ]
    check = (
        "import torch\n"
        "def same(a, b): return a.dtype == b.dtype and torch.equal(a, b)\n"
        "def check(run):\n"
        "    e = run.exports[0]\n"
        "    w = dict(e['w'])\n"
        "    big = w.pop('big')\n"
        "    run.expect('big', type(big).__name__ == 'NotExportable', 'big')\n"
        "    right = {'none': None, 'bools': [True, False], 'pair': (1, -2.5), 3: '\\u8a9e'}\n"
        "    run.expect('plain', w == right, 'plain')\n"
        "    half = torch.tensor([[1.5], [-2.0]], dtype=torch.bfloat16)\n"
        "    run.expect('half', same(e['half'], half), 'half')\n"
        "    run.expect('flags', same(e['flags'], torch.tensor([True, False])), 'flags')\n"
        "    run.expect('empty', same(e['empty'], torch.empty(0, 3)), 'empty')\n"
        "    run.expect('scalar', same(e['scalar'], torch.tensor(7)), 'scalar')\n"
        "    run.expect('number of tensor', run.number(0, 'scalar') == 7, 'scalar')\n"
        "    run.expect('conjugate', same(e['conjugate'], torch.tensor([1 - 2j])), 'conjugate')\n"
        "    run.expect('weight', same(e['weight'], torch.arange(3.0)), 'weight')\n"
        "    array = torch.arange(4, dtype=torch.int32)\n"
        "    run.expect('array', same(e['array'], array), 'array')\n"
        "    run.expect('number', run.number(0, 'number') == 0.5, 'number')\n"
        "    run.expect('names', 'model' in e and 'absent' not in e and len(e) == 11, 'names')\n"
        "    e['model']\n"
    )
    graded = await grade(executor, source, check, exports=("w", *names))
    assert graded.problem is None, graded.verdict.problem
    assert graded.failed == ["export-unsupported"]
    assert graded.verdict.results[-1].args == {"name": "model", "rank": 0, "type": "Linear"}
    assert len(graded.verdict.results) == 13


async def test_shards_of_a_model_make_a_whole_tensor(executor: LocalExecutor) -> None:
    source = (
        GLOO + "from torch import nn\n"
        "from torch.distributed.fsdp import fully_shard\n"
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "torch.manual_seed(0)\n"
        "model = nn.Linear(3, 5)\n"
        "before = model.weight.detach().clone()\n"
        'fully_shard(model, mesh=init_device_mesh("cpu", (2,)))\n'
        "w = model.weight\n"
        "mine = torch.tensor(dist.get_rank())\n"
    )
    check = (
        "import torch\n"
        "def check(run):\n"
        "    shapes = [tuple(run.tensor(rank, 'w').shape) for rank in range(2)]\n"
        "    run.expect('rows', shapes == [(3, 3), (2, 3)], f'{shapes}')\n"
        "    run.expect('whole', torch.equal(run.whole('w'), run.whole('before')), 'whole')\n"
        "    run.whole('mine')\n"
    )
    graded = await grade(executor, source, check, exports=("w", "before", "mine"), ranks=2)
    assert graded.problem is None, graded.verdict.problem
    assert graded.failed == ["export-not-whole"]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("v = 1", "export-missing"),
        ('w = "text"', "export-not-tensor"),
        ("import torch\nw = torch.ones(3)", "export-shape"),
        ("import torch\nw = torch.ones(4, dtype=torch.float64)", "export-dtype"),
        ("import torch\nw = torch.ones(1 << 24)", "export-too-large"),
        ("w = [0] * 200_000", "export-too-large"),
        ("w = []\nw.append(w)", "export-not-tensor"),
        ("class W: pass\nw = W()", "export-unsupported"),
    ],
)
async def test_what_a_program_hands_out_wrongly_is_its_own_fault(
    executor: LocalExecutor, source: str, code: str
) -> None:
    graded = await grade(executor, source, WANTS_THREE)
    assert (graded.problem, graded.verdict.is_passed) == (None, False)
    assert [r.code for r in graded.verdict.results] == [code]


async def test_limit_of_what_is_handed_out_counts_all_ranks(executor: LocalExecutor) -> None:
    source = GLOO + "w = torch.ones(100)\n"
    check = "def check(run): run.expect('there', run.tensor(1, 'w').sum() == 100, 'w')\n"
    enough = await grade(executor, source, check, ranks=2, limits=Limits(export_bytes=1200))
    too_little = await grade(executor, source, check, ranks=2, limits=Limits(export_bytes=600))
    assert enough.verdict.is_passed
    assert [r.code for r in too_little.verdict.results] == ["export-too-large"]


async def test_check_sees_what_the_run_printed_sent_and_held(executor: LocalExecutor) -> None:
    check = (
        "def check(run):\n"
        "    calls = [c for c in run.collectives if c.op == 'all_reduce']\n"
        "    run.expect('calls', sorted(c.rank for c in calls) == [0, 1], 'calls')\n"
        "    run.expect('bytes', {c.input_bytes for c in calls} == {16}, 'bytes')\n"
        "    run.expect('peaks', sorted(run.peaks) == [0, 1], 'peaks')\n"
        "    run.expect('text', run.text(1) == 'sent\\n', run.text(1))\n"
        "    run.expect('source', 'all_reduce(w)' in run.source, 'source')\n"
    )
    graded = await grade(executor, SUM + 'print("sent")\n', check, ranks=2)
    assert graded.verdict.is_passed, graded.verdict


async def test_failing_run_is_no_pass_unless_the_check_accepts_its_status(
    executor: LocalExecutor,
) -> None:
    source = 'w = 1\nraise ValueError("on purpose")\n'
    accepts = "ACCEPTS = ('error',)\n" + LOOKS_AT_NOTHING_SPECIAL
    refused = await grade(executor, source, LOOKS_AT_NOTHING_SPECIAL)
    accepted = await grade(executor, source, accepts)
    wrongly_ok = await grade(executor, "w = 1\n", accepts)
    assert [r.code for r in refused.verdict.results] == ["run-not-accepted"]
    assert (refused.verdict.is_passed, accepted.verdict.is_passed) == (False, True)
    assert not wrongly_ok.verdict.is_passed
    assert accepted.outcome.status == "error"


async def test_rank_that_failed_hands_out_nothing(executor: LocalExecutor) -> None:
    check = (
        "ACCEPTS = ('error',)\n"
        "def check(run): run.expect('none', not len(run.exports[0]), 'something came')\n"
    )
    graded = await grade(executor, "w = 1\nimport sys\nsys.exit(3)\n", check)
    assert graded.verdict.is_passed


# ------------------------------------------------------------------ broken checks
@pytest.mark.parametrize(
    ("check", "code"),
    [
        ("def check(run): raise KeyError('x')", "check-raised"),
        ("def check(run): 1 +", "check-raised"),
        ("raise SystemExit(0)", "check-raised"),
        ("x = 1", "check-invalid"),
        ("def check(run): pass", "check-invalid"),
        ("def check(run):\n    run.expect('a', True, 'm')\n    return True", "check-invalid"),
        ("ACCEPTS = ('engine_failure',)\ndef check(run): run.expect('a', 1, 'm')", "check-invalid"),
        ("def check(run): run.expect('a', 1, 'm'); run.expect('a', 1, 'm')", "check-raised"),
        (
            "def check(run):\n  for i in range(64): run.expect(f'{i}', 1, 'x' * 2000)",
            "check-invalid",
        ),
        ("import os\ndef check(run): os._exit(0)", "check-died"),
        ("import os\ndef check(run): os.kill(os.getpid(), 11)", "check-died"),
        ("def check(run): bytearray(4 << 30)", "check-raised"),
    ],
)
async def test_check_that_breaks_is_a_problem_and_no_pass(
    executor: LocalExecutor, check: str, code: str
) -> None:
    graded = await grade(executor, "w = 1\n", check)
    assert (graded.problem, graded.verdict.is_passed) == (code, False)
    assert graded.outcome.status == "ok"


async def test_what_a_check_raises_is_for_its_author_only(
    executor: LocalExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    check = "def check(run): raise ValueError(f'the answer is {6 * 7}, not {run.number(0, \"w\")}')"
    with caplog.at_level(logging.WARNING):
        graded = await grade(executor, "w = 1\n", check)
    assert "answer" not in encode(graded.verdict)
    assert graded.verdict.problem is not None
    assert dict(graded.verdict.problem.args) == {"type": "ValueError", "line": 1}
    assert "the answer is 42" in caplog.text


async def test_check_that_never_ends_is_stopped_at_its_own_limit(executor: LocalExecutor) -> None:
    check = Check(source="def check(run):\n    while True: pass", limits=Limits(wall_s=1))
    graded = await grade(executor, "w = 1\n", check)
    assert (graded.problem, graded.verdict.is_passed) == ("check-timeout", False)


async def test_check_is_no_program_to_be_submitted(executor: LocalExecutor) -> None:
    program = Program(source="x = 1", world_size=1, evidence_bytes=0)
    with pytest.raises(ValueError, match="check"):
        await executor.submit(program, RunRef(run_id="no-program"))


async def test_run_that_is_cancelled_is_not_judged(executor: LocalExecutor) -> None:
    ref = RunRef(run_id="cancelled-graded")
    source = "print('on', flush=True)\nwhile True: pass\n"
    check = Check(source=LOOKS_AT_NOTHING_SPECIAL)
    await executor.submit(Program(source=source, world_size=1), ref, check=check)
    await executor.cancel(ref)
    ran = await collect(executor, ref)
    assert ran.outcome.status == "cancelled"
    assert not any(isinstance(e, Verdict) and e.is_passed for e in ran.events)


async def test_run_that_is_cancelled_while_it_is_judged_ends_cancelled(
    executor: LocalExecutor,
) -> None:
    ran = await grade(executor, "w = 1\n", LOOKS_AT_NOTHING_SPECIAL)
    run = SubmittedRun(Program(source="w = 1\n", world_size=1), RunRef(run_id="late"), "cpu")
    stopped: list[bool] = []

    async def attempts(judging: SubmittedRun) -> Outcome:
        run.cancel()
        stopped.append(judging.is_cancelled)
        return bare_outcome(judging, "cancelled")

    outcome = await judged(run, Check(source=LOOKS_AT_NOTHING_SPECIAL), ran.outcome, attempts)
    assert stopped == [True]
    assert outcome.status == "cancelled"
    run.put(outcome)
    verdict = run.trace.verdict
    assert verdict is not None
    assert verdict.problem is not None
    assert (verdict.is_passed, verdict.problem.code) == (False, "run-not-judged")
