"""`academy grade`: output and exit codes, with the real engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = "import torch\nw = torch.arange(3)\nprint('made')\n"
CHECK = """\
import torch
def check(run):
    texts = {"en": "The sum is wrong.", "ja": "和が違います。"}
    run.expect("sum", run.tensor(0, "w").sum() == 3, texts)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.fixture
def check(tmp_path: Path) -> Path:
    path = tmp_path / "check.py"
    path.write_text(CHECK, encoding="utf-8")
    return path


def grade(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", "grade", *map(str, args)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_right_program_passes_with_exit_code_0(program: Path, check: Path) -> None:
    done = grade(program, "--check", check, "--export", "w")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["[rank 0] made", "check sum holds", "passed"]
    assert lines[3].startswith("ok after")


def test_wrong_program_says_what_fails_with_exit_code_1(program: Path, check: Path) -> None:
    program.write_text(PROGRAM.replace("3", "4"), encoding="utf-8")
    done = grade(program, "--check", check, "--export", "w")
    assert done.returncode == 1
    assert "check sum fails: The sum is wrong." in done.stdout
    assert "not passed" in done.stdout


def test_json_has_the_verdict_before_the_outcome(program: Path, check: Path) -> None:
    done = grade(program, "--check", check, "--json")
    assert done.returncode == 1
    verdict, outcome = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    assert (verdict["kind"], outcome["kind"]) == ("verdict", "outcome")
    assert verdict["results"][0]["code"] == "export-missing"
    assert verdict["problem"] is None


def test_author_is_told_what_the_check_raised(program: Path, check: Path) -> None:
    check.write_text("def check(run):\n    raise ValueError('my mistake')\n", encoding="utf-8")
    done = grade(program, "--check", check)
    assert done.returncode == 1
    assert "problem: " in done.stdout
    assert "my mistake" not in done.stdout
    assert "my mistake" in done.stderr


@pytest.mark.parametrize(
    ("exports", "said"),
    [(["--export", "no-name"], "names of variables"), (["--ranks", "9"], "ranks must be")],
)
def test_bad_arguments_have_exit_code_2(
    program: Path, check: Path, exports: list[str], said: str
) -> None:
    done = grade(program, "--check", check, *exports)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_missing_check_has_exit_code_2(program: Path, tmp_path: Path) -> None:
    done = grade(program, "--check", tmp_path / "absent.py")
    assert done.returncode == 2
    assert "academy grade: cannot read" in done.stderr
