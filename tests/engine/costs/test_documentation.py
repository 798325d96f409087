"""docs/costs.md says what the code does."""

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from engine.costs.causes import Cause
from engine.events import Event
from engine.trace import Trace
from engine.wire import encode
from tests.engine.costs.conftest import Train
from tests.engine.costs.programs import EQUAL_PROGRAMS

PAGE = (Path(__file__).parents[3] / "docs" / "costs.md").read_text(encoding="utf-8")


def test_every_cause_is_in_the_table() -> None:
    _, table = PAGE.split("| cause | what it is |")
    listed = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(get_args(Cause))


def test_every_formula_in_the_text_exists() -> None:
    named = re.findall(r"`(?!engine)([a-z]+)\.([a-z_0-9]+)`", PAGE)
    found = [f"{module}.{name}" for module, name in named if hasattr(_module(module), name)]
    assert found == [f"{module}.{name}" for module, name in named]
    assert "zero.model_states" in found


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"engine.costs.{name}")


def _write(trace: Trace, path: Path) -> None:
    events: list[Event] = [*trace.collectives, *trace.memory]
    path.write_text("\n".join(map(encode, events)), encoding="ascii")


async def test_examples_explain_a_run(
    train: Train,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example, reading = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    trace = await train(EQUAL_PROGRAMS["fsdp2-true"])
    monkeypatch.chdir(tmp_path)
    _write(trace, tmp_path / "run.jsonl")
    found: dict[str, object] = {}
    exec(reading, found)
    exec(example, {"trace": found["trace"]})
    lines = capsys.readouterr().out.splitlines()
    # Two all_gathers and a reduce_scatter; the five categories that have a closed form.
    assert [line.endswith(" Amount(num_elements=0, num_bytes=0)") for line in lines[:3]] == [
        True
    ] * 3
    assert [line.endswith(" 0") for line in lines[3:]] == [True] * 5
