"""A real server whose parts are killed: what has ended stays, what went on is our failure.

The deaths of warm parents and supervisors under the engine alone are in tests/engine; here a client
sees them, and that of the server itself.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bench.holdings import keeping
from app.bench.processes import kill_hard, process_table, still_alive, zygotes
from app.bench.serving import Message, ServedSite
from app.bench.soak import Soak, digest, percentile
from engine.events import Outcome
from engine.wire import decode

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "academy.service"
END_LIMIT_S = 30.0
SHORT = "print('one', flush=True)\nprint('two')\n"


@pytest.fixture(scope="module")
def soak(content: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soak]:
    """A server of its own, and who watches it."""
    data_dir = tmp_path_factory.mktemp("recovery") / "data"
    settings = {"ACADEMY_CONTENT_DIR": str(content), "ACADEMY_SLOTS": "2"}
    with keeping(data_dir) as keeper, ServedSite(data_dir, settings) as site:
        yield Soak(site, keeper, lambda _: None)


def held(soak: Soak) -> str:
    """A run whose rank is at work and that does not end by itself."""
    run_id = soak.hold()
    assert run_id is not None, soak.problems
    return run_id


def events(soak: Soak, run_id: str) -> list[Message]:
    return list(soak.site.follow(run_id))


def outcome(soak: Soak, run_id: str) -> Outcome:
    """The run's end, once it has come."""
    last = decode(events(soak, run_id)[-1].data)
    assert isinstance(last, Outcome)
    return last


def assert_runs_start(soak: Soak) -> None:
    seen = events(soak, soak.site.begin(SHORT))
    assert "".join(message.text for message in seen) == "one\ntwo\n"
    assert seen[-1].status == "ok"


def test_killed_supervisor_ends_its_run_as_our_failure_and_no_other(soak: Soak) -> None:
    run_ids = [held(soak), held(soak)]
    kill_hard(soak.a_supervisor_at_work())
    ended: list[str] = []
    while not ended:
        ended = [run_id for run_id in run_ids if '"ended"' in soak.site.state(run_id)]
    (other,) = set(run_ids) - set(ended)
    soak.site.cancel(other)
    found = outcome(soak, ended[0])
    assert (found.status, [d.code for d in found.diagnosis]) == (
        "engine_failure",
        ["engine-failure"],
    )
    assert outcome(soak, other).status == "cancelled"
    assert_runs_start(soak)


def test_killed_warm_parent_is_replaced_and_the_next_run_is_well(soak: Soak) -> None:
    run_id = held(soak)
    killed = zygotes(soak.site.pid, process_table())
    for zygote in killed:
        kill_hard(zygote.pid)
    assert still_alive({zygote.identity for zygote in killed}, END_LIMIT_S) == set()
    assert_runs_start(soak)
    soak.site.cancel(run_id)
    assert outcome(soak, run_id).status in ("cancelled", "engine_failure")
    end_s = time.monotonic() + END_LIMIT_S  # a slot that was parked may have served that run
    while not (now := zygotes(soak.site.pid, process_table())) and time.monotonic() < end_s:
        soak.site.state(run_id)
    assert now
    assert not {z.identity for z in now} & {z.identity for z in killed}


def test_killed_server_leaves_no_process_and_keeps_all_that_was_seen_to_end(soak: Soak) -> None:
    ended = [soak.site.begin(SHORT), soak.site.begin("1 / 0")]
    seen = [events(soak, run_id) for run_id in ended]
    going = [held(soak), held(soak)]
    waiting = soak.site.begin(SHORT)
    mine = {process.identity for process in soak.site.processes()}
    soak.site.kill()
    assert still_alive(mine, END_LIMIT_S) == set()
    soak.site.start()
    assert [events(soak, run_id) for run_id in ended] == seen
    for run_id in going:
        again = events(soak, run_id)
        assert again[-1].status == "engine_failure"
        assert [message.position for message in again] == list(range(1, len(again) + 1))
    assert outcome(soak, waiting).status == "engine_failure"
    assert_runs_start(soak)


def test_process_that_outlives_its_parent_and_a_file_in_shared_memory_are_counted(
    soak: Soak,
) -> None:
    base = soak.keeper.settled(soak.site.pid)
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="academy-"):
        said = subprocess.check_output(["sh", "-c", "sleep 600 >/dev/null & echo $!"], text=True)
        try:
            more = soak.keeper.holdings(soak.site.pid).beyond(base)
            assert (more["processes"], more["shared_memory"]) == (1, 1)
        finally:
            kill_hard(int(said))
    assert soak.keeper.left_over(soak.site.pid, base) == {}


def test_another_event_gives_another_digest() -> None:
    one, other = (Message(position=1, data=data) for data in ("{}", '{"a":1}'))
    assert digest([one]) == digest([one])
    assert len({digest(seen) for seen in ([], [one], [other], [one, other], [other, one])}) == 5


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(20, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (10.0, 19.0)
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.5) == 0.0


def test_service_unit_is_understood_and_leaves_the_sandbox_what_it_needs(tmp_path: Path) -> None:
    settings = dict(
        line.split("=", 1)
        for line in UNIT.read_text().splitlines()
        if "=" in line and not line.startswith("#")
    )
    assert (settings["Restart"], settings["KillMode"]) == ("always", "mixed")
    assert (settings["Delegate"], settings["OOMPolicy"]) == ("yes", "continue")
    for name in ("RestrictNamespaces", "PrivateUsers", "ProtectKernelTunables", "ProtectProc"):
        assert name not in settings
    command = settings["ExecStart"]
    assert command.endswith("/academy serve")
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(command, f"{sys.executable} -m app.cli serve"))
    said = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
