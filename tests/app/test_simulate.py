"""`academy simulate` and simulated runs over HTTP, with the real engine where it runs programs."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.bench import bench_app
from app.cli import app
from engine.wire import decode
from tests.app.conftest import OpenSite
from tests.app.scripted import ScriptedExecutor, outcome, output, started

ROOT = Path(__file__).parents[2]
DEADLINE_S = 120

TRAINS = """\
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group()
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(TRAINS, encoding="utf-8")
    return path


def simulate(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "simulate", *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_every_line_is_labelled_and_copied_to_trace(program: Path, tmp_path: Path) -> None:
    copy = tmp_path / "trace.jsonl"
    done = simulate(str(program), "--ranks", "1024", "--json", "--trace", str(copy))
    assert done.returncode == 0, done.stderr
    assert copy.read_text() == done.stdout
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(event["simulated"] is True for event in found)
    assert (found[0]["kind"], found[0]["simulated_ranks"]) == ("started", 1024)
    assert (found[-1]["kind"], found[-1]["status"]) == ("outcome", "ok")
    assert len(found[-1]["ranks"]) == 1
    assert {e["group_size"] for e in found if e["kind"] == "collective"} == {1024}


def test_table_says_what_a_simulated_rank_holds_and_sends_per_step(program: Path) -> None:
    done = simulate(str(program), "--ranks", "1024")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "[rank 0] trained" in lines
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]
    cells = {row[0]: row[1:] for row in rows}
    assert "Memory of one of 1024 simulated ranks, in bytes" in done.stdout
    assert "Collectives of one of 1024 simulated ranks, per step" in done.stdout
    assert cells["parameter"][0] == cells["gradient"][0] == "256 (0.0 MiB)"
    assert cells["all_reduce"] == ["1", "64", "256"]


def test_program_that_reads_a_value_fails_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "reads.py"
    path.write_text("import torch\nx = torch.randn(4)\nprint(x.sum().item())\n", encoding="utf-8")
    done = simulate(str(path), "--ranks", "8")
    assert done.returncode == 1
    assert "diagnosis: Line 3 reads the values of a tensor: `x.sum().item()`." in done.stdout
    assert "Memory of one of" not in done.stdout


@pytest.mark.parametrize("ranks", ["0", "4097", "many"])
def test_impossible_number_of_ranks_is_a_bad_argument(program: Path, ranks: str) -> None:
    result = CliRunner().invoke(app, ["simulate", str(program), "--ranks", ranks])
    assert result.exit_code == 2


async def test_api_starts_a_simulation_and_labels_its_events(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    asked = {"source": TRAINS, "ranks": 1, "simulated_ranks": 1024}
    created = await site.client.post("/api/runs", json=asked)
    assert created.status_code == 201
    run_id = created.json()["id"]
    assert executor.programs[run_id].simulated_ranks == 1024
    executor.put(run_id, started(simulated_ranks=1024), output("hello\n"), outcome())
    stream = await site.client.get(f"/api/runs/{run_id}/events")
    lines = [line[6:] for line in stream.text.splitlines() if line.startswith("data: ")]
    assert len(lines) == 3
    assert all(json.loads(line)["simulated"] is True for line in lines)
    assert decode(lines[0]) == started(simulated_ranks=1024)
    state = (await site.client.get(f"/api/runs/{run_id}")).json()
    assert (state["ranks"], state["simulated_ranks"]) == (1, 1024)


async def test_events_of_a_real_run_have_no_label(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    run_id = (await site.client.post("/api/runs", json={"source": "", "ranks": 2})).json()["id"]
    executor.put(run_id, started(), outcome())
    stream = await site.client.get(f"/api/runs/{run_id}/events")
    assert '"simulated":' not in stream.text
    assert (await site.client.get(f"/api/runs/{run_id}")).json()["simulated_ranks"] is None


@pytest.mark.parametrize(("ranks", "simulated"), [(2, 8), (1, 0), (1, 4097), (1, "8")])
async def test_api_refuses_simulations_that_cannot_be(
    site: OpenSite, ranks: int, simulated: object
) -> None:
    asked = {"source": "", "ranks": ranks, "simulated_ranks": simulated}
    refused: httpx.Response = await site.client.post("/api/runs", json=asked)
    assert refused.status_code == 422


def test_benchmark_prints_a_table_and_one_json_object_as_last_line() -> None:
    arguments = ["simulate", "--ranks", "16", "--layers", "1", "--repeats", "1", "--json"]
    result = CliRunner().invoke(bench_app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert set(found) == {"ranks"}
    assert set(found["ranks"]) == {"16"}
    assert found["ranks"]["16"]["seconds"] > 0


def test_benchmark_refuses_impossible_numbers_of_ranks() -> None:
    result = CliRunner().invoke(bench_app, ["simulate", "--ranks", "4097"])
    assert result.exit_code == 2
    assert "from 1 to 4096" in result.output
