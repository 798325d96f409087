"""The server as process 1 of a container, which has no init beside it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bench.processes import below, kill_hard, process_table, zygotes
from engine.sandbox import linux
from tests.app.test_serve import DEADLINE_S, ROOT, SERVE, Served

CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
CODE = """
import os, signal, sys, time
from app.cli.first_process import as_first_process
def work():
    {work}
sys.exit(as_first_process(work))
"""


@pytest.fixture(autouse=True)
def needs_containers() -> None:
    if subprocess.run([*CONTAINER, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine makes no user and pid namespaces")


def in_container(work: str) -> "subprocess.Popen[str]":
    command = [*CONTAINER, sys.executable, "-c", CODE.format(work=work)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def served(content: Path, tmp_path: Path) -> Iterator[Served]:
    server = Served(content, tmp_path / "data", command=(*CONTAINER, *SERVE))
    yield server
    for process in below(server.process.pid, process_table()):
        if process.parent == server.process.pid:
            kill_hard(process.pid)  # the first one: with it the kernel ends all
    server.process.wait(DEADLINE_S)


def test_what_outlives_its_parent_is_reaped(served: Served) -> None:
    served.wait_for("runs can start")
    (first,) = linux.children_of(served.process.pid)
    (old,) = zygotes(first, process_table())
    kill_hard(old.pid)
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        inside = below(first, table := process_table())
        fresh = [zygote for zygote in zygotes(first, table) if zygote.pid != old.pid]
        if fresh and not [process for process in inside if process.state == "Z"]:
            break
    else:
        pytest.fail(f"unreaped or not recovered: {inside}")
    os.kill(first, signal.SIGTERM)
    assert served.process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    ("work", "code"),
    [
        ("return 0", 0),
        ("return 3", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("os.fork() or os._exit(7); return 5", 5),
    ],
)
def test_the_work_s_end_is_its_own(work: str, code: int) -> None:
    with in_container(work) as process:
        assert process.wait(DEADLINE_S) == code


def test_signals_reach_the_work_once() -> None:
    work = (
        "signal.signal(signal.SIGTERM, lambda *_: print('told', flush=True));"
        " print('up', flush=True); signal.pause(); return 4"
    )
    with in_container(work) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        (first,) = linux.children_of(process.pid)
        os.kill(first, signal.SIGTERM)
        assert process.stdout.read() == "told\n"
        assert process.wait(DEADLINE_S) == 4
