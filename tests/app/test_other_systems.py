"""On other systems the site serves its lessons and refuses runs with the reason.

Simulated: see `elsewhere`, which also says what that cannot show.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.app.test_serve import DEADLINE_S, HTMX, ROOT, Served

SYSTEMS = ("darwin", "win32")
LESSON = "/en/lessons/tiny"
IMPORT_ALL = """
import importlib, pkgutil
from tests.app import elsewhere
elsewhere.move_to({system!r})
import app, engine.executor
names = [m.name for p in (app, engine.executor)
         for m in pkgutil.walk_packages(p.__path__, p.__name__ + ".", onerror=print)]
kept = [n for n in names if not n.startswith(("app.bench", "app.store.migrations"))
        and not n.endswith("__main__")]
for name in kept:
    importlib.import_module(name)
print(len(kept))
"""


def elsewhere(system: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "tests.app.elsewhere", system, *args]


@pytest.fixture(scope="module", params=SYSTEMS)
def served(
    request: pytest.FixtureRequest, content: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """(system, address) of a site that serves there."""
    system = str(request.param)
    command = elsewhere(system, "serve")
    server = Served(content, tmp_path_factory.mktemp("elsewhere") / "data", command=command)
    try:
        address = server.wait_for("http://").split()[-1]
        assert system in server.wait_for("runs cannot start: Runs need Linux")
        yield system, address
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_module_of_the_app_and_of_the_executor_is_imported(system: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL.format(system=system)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 60


@pytest.mark.parametrize(
    ("language", "words"), [("en", "Runs need Linux"), ("ja", "Linux が必要ですが")]
)
async def test_lesson_is_read_and_says_why_nothing_runs(
    served: tuple[str, str], language: str, words: str
) -> None:
    system, address = served
    async with httpx.AsyncClient(base_url=address, timeout=DEADLINE_S) as client:
        page = await client.get(f"/{language}/lessons/tiny")
    assert page.status_code == 200
    assert words in page.text
    assert system in page.text
    assert "cell-hello" in page.text


async def test_run_is_refused_with_the_reason(served: tuple[str, str]) -> None:
    system, address = served
    async with httpx.AsyncClient(base_url=address, timeout=DEADLINE_S) as client:
        await client.get(LESSON)
        form = {"code": "print(1)", "ranks": "2"}
        pressed = await client.post(f"{LESSON}/cells/hello/runs", data=form, headers=HTMX)
        asked = await client.post("/api/runs", json={"source": "print(1)", "ranks": 1})
        page = await client.get(LESSON)
    assert (pressed.status_code, asked.status_code) == (503, 503)
    assert f"this is {system}" in pressed.text
    assert f"this is {system}" in asked.json()["detail"]
    assert "print(1)" in page.text, "what the learner wrote is kept"


@pytest.mark.parametrize("system", SYSTEMS)
def test_doctor_says_what_is_needed_and_refuses(system: str) -> None:
    done = subprocess.run(elsewhere(system, "doctor"), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 3
    assert "tier: open" in done.stdout
    assert "Runs need Linux" in done.stdout


@pytest.mark.parametrize("system", SYSTEMS)
def test_program_on_the_command_line_is_refused(system: str, tmp_path: Path) -> None:
    program = tmp_path / "hello.py"
    program.write_text("print('never')\n")
    done = subprocess.run(
        elsewhere(system, "run", str(program)), cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "Runs need Linux" in done.stderr
    assert "never" not in done.stdout
