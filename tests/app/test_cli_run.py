"""`academy run`: output, exit codes and signals, with the real engine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from app.cli import app

ROOT = Path(__file__).parents[2]
DEADLINE_S = 120

TWO_RANKS = """\
import torch, torch.distributed as dist
dist.init_process_group()
total = torch.ones(1) * dist.get_rank()
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {total.item()}")
"""


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", "run", *args]


def run(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, **variables},
    )


def events(lines: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.splitlines()]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(TWO_RANKS, encoding="utf-8")
    return path


def test_json_has_one_event_per_line_ends_in_the_outcome_and_is_copied_to_trace(
    program: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "trace.jsonl"
    done = run(str(program), "--ranks", "2", "--json", "--trace", str(copy))
    assert done.returncode == 0, done.stderr
    found = events(done.stdout)
    assert copy.read_text() == done.stdout
    assert done.stdout.isascii()
    assert found[0]["kind"] == "started"
    assert [event["kind"] for event in found].count("outcome") == 1
    assert found[-1]["kind"] == "outcome"
    assert found[-1]["status"] == "ok"
    texts = {event["text"] for event in found if event["kind"] == "output"}
    assert texts == {"rank 0 of 2 has 1.0\n", "rank 1 of 2 has 1.0\n"}


def test_people_see_each_line_with_its_rank_and_no_escape_sequences(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(TWO_RANKS + 'print("\\x1b[2Jhidden", end="")\n', encoding="utf-8")
    done = run(str(path), "--ranks", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "[rank 1] rank 1 of 2 has 1.0" in lines
    assert "[rank 0] \\x1b[2Jhidden" in lines
    assert "\x1b" not in done.stdout


def test_failing_program_is_exit_code_1_with_its_diagnosis(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("\n1 / 0\n", encoding="utf-8")
    done = run(str(path))
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout
    assert "line 2" in done.stdout


def test_device_that_is_not_there_is_exit_code_3_with_an_outcome(program: Path) -> None:
    done = run(str(program), "--ranks", "8", "--device", "cuda", "--json")
    assert done.returncode == 3
    (outcome,) = events(done.stdout)
    assert outcome["status"] == "engine_failure"
    (diagnosis,) = cast("list[dict[str, object]]", outcome["diagnosis"])
    assert str(diagnosis["code"]).startswith("cuda-")
    assert cast("dict[str, int]", diagnosis["args"])["ranks"] == 8
    assert done.stderr == f"academy run: {diagnosis['message']}\n"
    assert "ranks: 8" in done.stderr


def test_interrupted_run_ends_as_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("print('here', flush=True)\nwhile True: pass\n", encoding="utf-8")
    with subprocess.Popen(
        command(str(path), "--json"), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["kind"] == "output":
                break
        os.kill(process.pid, signal.SIGINT)
        *_, last = process.stdout
        assert process.wait(DEADLINE_S) == 1
    assert json.loads(last)["status"] == "cancelled"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["no-such-file.py"], "cannot read"),
        (["FILE", "--ranks", "0"], "ranks"),
        (["FILE", "--ranks", "9"], "ranks"),
        (["FILE", "--ranks", "two"], "--ranks"),
        (["FILE", "--device", "tpu"], "tpu"),
        (["FILE", "--timeout", "0"], "--timeout"),
        (["FILE", "--timeout", "nan"], "--timeout"),
        (["FILE", "--memory", "-1"], "--memory"),
        (["FILE", "--tier", "moat"], "'moat' is not one of"),
        (["FILE", "--tier", "walled", "--allow-unsandboxed"], "choose the tier walled, or"),
        (["FILE", "--trace", "no/such/folder/trace"], "cannot write"),
        (["LATIN"], "not UTF-8"),
        (["BIG"], "larger than 256 KiB"),
        ([], "FILE"),
    ],
)
def test_bad_arguments_are_exit_code_2_and_named(
    args: Sequence[str], said: str, program: Path, tmp_path: Path
) -> None:
    (tmp_path / "latin.py").write_bytes("# caf\xe9\n".encode("latin-1"))
    (tmp_path / "big.py").write_bytes(b"#" * (256 * 1024 + 1))
    paths = {"FILE": program, "LATIN": tmp_path / "latin.py", "BIG": tmp_path / "big.py"}
    result = CliRunner().invoke(app, ["run", *(str(paths.get(arg, arg)) for arg in args)])
    assert result.exit_code == 2
    assert said in result.output.replace("\n", "")


def test_demanded_tier_is_the_one_that_runs(program: Path) -> None:
    asked = run(str(program), "--json", "--tier", "walled")
    for done in (asked, run(str(program), "--json", ACADEMY_TIER="walled")):
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[0])["tier"] == "walled"


def test_endless_file_is_refused_unread() -> None:
    done = run("/dev/zero")
    assert done.returncode == 2
    assert "larger than 256 KiB" in done.stderr


def test_full_disk_is_said_in_one_line(program: Path) -> None:
    done = run(str(program), "--json", "--trace", "/dev/full")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "academy run: cannot write: No space left on device"
    assert "Traceback" not in done.stderr


def test_run_starts_without_the_web_and_the_database() -> None:
    code = (
        "import sys, app.cli, app.cli.run\n"
        "found = {'fastapi', 'starlette', 'sqlalchemy', 'torch', 'uvicorn'} & set(sys.modules)\n"
        "sys.exit(', '.join(found) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_reader_that_goes_away_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("while True: print('more', flush=True)\n", encoding="utf-8")
    with subprocess.Popen(
        command(str(path), "--json", "--timeout", "600"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(DEADLINE_S) == 1
