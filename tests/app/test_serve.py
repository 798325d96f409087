"""`academy serve` with the real engine, over real connections."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from queue import Queue
from threading import Thread

import httpx
import pytest

from engine.events import Collective, Note, Outcome, Output
from engine.sandbox.choice import TIERS
from engine.wire import decode

ROOT = Path(__file__).parents[2]
DEADLINE_S = 120
LESSON = "/en/lessons/tiny"
SERVE = (sys.executable, "-m", "app.cli", "serve")
HTMX = {"hx-request": "true"}


class Served:
    """A running `academy serve`; `said` are its lines."""

    def __init__(
        self, content: Path, data_dir: Path, *args: str, command: Sequence[str] = SERVE
    ) -> None:
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--data-dir", str(data_dir), *args],
            cwd=ROOT,
            env={**os.environ, "ACADEMY_CONTENT_DIR": str(content), "ACADEMY_SLOTS": "2"},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self._lines: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

    def wait_for(self, words: str) -> str:
        """The next line that has these words."""
        while words not in (line := self._lines.get(timeout=DEADLINE_S)):
            self.said.append(line)
        return line

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@pytest.fixture(scope="module")
def served(content: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a site that serves for all tests of this file."""
    server = Served(content, tmp_path_factory.mktemp("served") / "data")
    try:
        yield server.wait_for("http://").split()[-1]
    finally:
        assert server.stop() == 0


@pytest.fixture
async def client(served: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"accept-language": "en"}
    async with httpx.AsyncClient(base_url=served, headers=headers, timeout=DEADLINE_S) as client:
        await client.get(LESSON)
        yield client


async def read_stream(
    client: httpx.AsyncClient, url: str, last_event_id: int = 0
) -> AsyncIterator[dict[str, str]]:
    """Fields of each message as it comes; data of several lines is joined."""
    headers = {"last-event-id": str(last_event_id)}
    async with client.stream("GET", url, headers=headers) as answer:
        assert answer.status_code == 200
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if not line and fields:
                yield fields
                fields = {}
            name, _, value = line.partition(": ")
            if name == "data" and "data" in fields:
                value = f"{fields['data']}\n{value}"
            if name:
                fields[name] = value


async def run(client: httpx.AsyncClient, source: str, ranks: int = 2) -> str:
    answer = await client.post("/api/runs", json={"source": source, "ranks": ranks})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def events(client: httpx.AsyncClient, run_id: str) -> list[object]:
    url = f"/api/runs/{run_id}/events"
    return [decode(message["data"]) async for message in read_stream(client, url)]


async def start_cell(
    client: httpx.AsyncClient, cell: str, code: str | None = None, ranks: int = 2
) -> str:
    """Press Run as the page does; the run's id."""
    if code is None:
        code = (await client.get(f"{LESSON}/cells/{cell}/program.py")).text
    form = {"code": code, "ranks": str(ranks)}
    answer = await client.post(f"{LESSON}/cells/{cell}/runs", data=form, headers=HTMX)
    assert answer.status_code == 201, answer.text
    return answer.text.split('data-run-id="')[1].split('"')[0]


async def test_cell_streams_frames_of_real_ranks_until_done(client: httpx.AsyncClient) -> None:
    run_id = await start_cell(client, "hello")
    messages = [m async for m in read_stream(client, f"/en/runs/{run_id}/stream")]
    names = [message.get("event") for message in messages]
    assert names[-2:] == ["marks", "done"]
    frames = [message for message in messages if "event" not in message]
    positions = [int(frame["id"]) for frame in frames]
    assert positions == sorted(positions)
    html = "".join(frame["data"] for frame in frames)
    for rank in range(2):
        assert html.count(f"rank {rank} of 2 has [3.0, 3.0, 3.0]") == 1
    calls = [json.loads(m["data"]) for m in messages if m.get("event") == "trace"]
    assert sum(len(part["calls"]) for part in calls) == 2


async def test_stream_resumed_anywhere_has_the_rest_of_the_output_exactly(
    client: httpx.AsyncClient,
) -> None:
    code = "import time\nfor n in range(40): print(f'<{n}>', flush=True); time.sleep(0.02)\n"
    run_id = await start_cell(client, "hello", code, ranks=1)
    url = f"/en/runs/{run_id}/stream"
    live = [m async for m in read_stream(client, url) if "event" not in m]
    assert len(live) > 2
    for index, frame in enumerate(live):
        rest = [m async for m in read_stream(client, url, int(frame["id"])) if "event" not in m]
        after = "".join(m["data"] for m in live[index + 1 :])
        again = "".join(m["data"] for m in rest)
        for n in range(40):
            assert again.count(f"&lt;{n}&gt;") == after.count(f"&lt;{n}&gt;")


async def test_events_of_all_ranks_come_through_the_api(client: httpx.AsyncClient) -> None:
    source = (ROOT / "tests/app/lessons/programs/synced.py").read_text()
    found = await events(client, await run(client, source))
    outcome = found[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.status == "ok"
    for rank in range(2):
        assert [e.op for e in found if isinstance(e, Collective) and e.rank == rank] == [
            "all_gather",
            "all_reduce",
        ]
        assert [e.text for e in found if isinstance(e, Output) and e.rank == rank] == ["done\n"]


async def test_download_names_the_adaptations_of_the_last_run(client: httpx.AsyncClient) -> None:
    run_id = await start_cell(client, "synced")
    notes = {e.code for e in await events(client, run_id) if isinstance(e, Note)}
    assert "syncbn-on-cpu" in notes
    program = (await client.get(f"{LESSON}/cells/synced/program.py")).text
    assert program.startswith("# ")
    head = program.split("\n\n", 1)[0]
    assert "academy run synced.py --ranks 2" in head
    assert "SyncBatchNorm ran on CPU ranks" in head
    assert all(line.startswith("# ") for line in head.splitlines())
    compile(program, "synced.py", "exec")


async def test_page_without_javascript_runs_shows_and_stops(client: httpx.AsyncClient) -> None:
    form = {"code": "while True: pass", "ranks": "1"}
    pressed = await client.post(f"{LESSON}/cells/hello/runs", data=form)
    assert pressed.status_code == 303
    assert pressed.headers["location"] == f"{LESSON}#cell-hello"
    page = (await client.get(LESSON)).text
    assert "while True: pass" in page
    run_id = page.split('data-run-id="')[1].split('"')[0]
    assert 'http-equiv="refresh"' in (await client.get(f"/en/runs/{run_id}")).text
    stopped = await client.post(f"/en/runs/{run_id}/cancel")
    assert stopped.status_code == 303
    final = (await events(client, run_id))[-1]
    assert isinstance(final, Outcome)
    assert final.status == "cancelled"
    ended = (await client.get(f"/en/runs/{run_id}")).text
    assert 'http-equiv="refresh"' not in ended
    assert "Stopped" in ended


async def test_exception_marks_the_learners_line(client: httpx.AsyncClient) -> None:
    run_id = await start_cell(client, "hello", "日本 = 1\n日本; 1 / 0\n", ranks=1)
    messages = [m async for m in read_stream(client, f"/en/runs/{run_id}/stream")]
    marks = next(json.loads(m["data"]) for m in messages if m.get("event") == "marks")
    assert [(mark["line"], mark["column"]) for mark in marks] == [(2, 4)]


async def test_leaving_the_stream_does_not_stop_the_run(client: httpx.AsyncClient) -> None:
    code = "import time\nprint('first', flush=True)\ntime.sleep(0.5)\nprint('last')\n"
    run_id = await start_cell(client, "hello", code, ranks=1)
    async for message in read_stream(client, f"/en/runs/{run_id}/stream"):
        if "first" in message.get("data", ""):
            break
    texts = [e.text for e in await events(client, run_id) if isinstance(e, Output)]
    assert "".join(texts) == "first\nlast\n"


async def test_page_of_a_run_with_many_events_leaves_others_their_turn(
    client: httpx.AsyncClient,
) -> None:
    code = "for n in range(20000): print(n, flush=True)\n"
    run_id = await start_cell(client, "hello", code, ranks=2)
    async for message in read_stream(client, f"/en/runs/{run_id}/stream"):
        if "event" not in message:
            assert (await client.get("/healthz")).status_code == 200
    assert (await client.get(f"/api/runs/{run_id}")).json()["state"] == "ended"


async def test_signal_ends_open_streams_and_runs_and_a_new_server_knows_their_end(
    content: Path, tmp_path: Path
) -> None:
    server = Served(content, tmp_path / "data")
    address = server.wait_for("http://").split()[-1]
    async with httpx.AsyncClient(base_url=address, timeout=DEADLINE_S) as client:
        await client.get(LESSON)
        run_id = await start_cell(client, "hello", "print('up', flush=True)\nwhile True: pass\n")
        stream = read_stream(client, f"/en/runs/{run_id}/stream")
        async for message in stream:
            if "up" in message.get("data", ""):
                break
        server.process.send_signal(signal.SIGTERM)
        assert [m for m in [m async for m in stream] if m.get("event") == "done"] == []
        assert await asyncio.to_thread(server.process.wait, DEADLINE_S) == 0
        cookies = client.cookies
    again = Served(content, tmp_path / "data")
    address = again.wait_for("http://").split()[-1]
    async with httpx.AsyncClient(base_url=address, cookies=cookies, timeout=60) as client:
        state = (await client.get(f"/api/runs/{run_id}")).json()
        assert (state["state"], state["status"]) == ("ended", "engine_failure")
        assert "up" in (await client.get(LESSON)).text
    assert await asyncio.to_thread(again.stop) == 0


def test_second_server_on_one_data_folder_is_refused(content: Path, tmp_path: Path) -> None:
    first = Served(content, tmp_path / "data")
    first.wait_for("http://")
    second = Served(content, tmp_path / "data")
    second.wait_for("another server uses")
    assert second.process.wait(DEADLINE_S) == 1
    assert first.stop() == 0


def test_port_in_use_is_said_with_a_remedy(served: str, content: Path, tmp_path: Path) -> None:
    port = served.rsplit(":", 1)[1]
    second = Served(content, tmp_path / "data", "--port", port)
    assert "choose another --port" in second.wait_for("cannot listen")
    assert second.process.wait(DEADLINE_S) == 1


async def test_site_without_isolation_serves_this_machine_only_and_says_so_on_every_page(
    content: Path, tmp_path: Path
) -> None:
    args = ("--allow-unsandboxed", "--host", "0.0.0.0")
    server = Served(content, tmp_path / "data", *args)
    try:
        server.wait_for("listening on 127.0.0.1 therefore, not on 0.0.0.0")
        address = server.wait_for("http://127.0.0.1:").split()[-1]
        assert addresses_of(server.process.pid, int(address.rsplit(":", 1)[1])) == {"127.0.0.1"}
        async with httpx.AsyncClient(base_url=address, timeout=DEADLINE_S) as client:
            for page in ("/en/", "/en/courses/basics", LESSON, "/en/nowhere", "/api/docs"):
                assert "may run without isolation" in (await client.get(page)).text
            foreign = await client.get("/en/", headers={"host": "academy.example"})
            assert foreign.status_code == 400
    finally:
        assert await asyncio.to_thread(server.stop) == 0


def addresses_of(pid: int, port: int) -> set[str]:
    """Where a process listens on this port, as the kernel tells."""
    found = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        address, _, number = local.partition(":")
        if state == "0A" and int(number, 16) == port:
            found.add(".".join(str(byte) for byte in reversed(bytes.fromhex(address))))
    return found


def test_tier_is_said_at_the_start(content: Path, tmp_path: Path) -> None:
    server = Served(content, tmp_path / "data")
    tier = server.wait_for("runs can start").rpartition("isolation: ")[2].strip(" )\n")
    assert tier in TIERS[:3]
    assert server.stop() == 0


def test_mistake_in_a_lesson_is_said_by_file_line_and_column(tmp_path: Path) -> None:
    folder = tmp_path / "content" / "lessons" / "courses"
    folder.mkdir(parents=True)
    (folder / "one.yaml").write_text("id: one\ntitle: {en: One}\nsummary: 3\nlessons: []\n")
    server = Served(tmp_path / "content", tmp_path / "data")
    server.wait_for("courses/one.yaml:3:")
    assert server.process.wait(DEADLINE_S) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide bubblewrap")
async def test_refusal_stands_for_learners_and_administrators_and_no_run_is_made(
    content: Path, tmp_path: Path
) -> None:
    bwrap = shutil.which("bwrap") or pytest.skip("there is no bubblewrap to hide")
    hide = f'mount --bind /dev/null {bwrap}; exec "$@"'
    command = ("unshare", "--mount", "sh", "-c", hide, "sh", *SERVE)
    server = Served(content, tmp_path / "data", "--tier", "fortified", command=command)
    try:
        address = server.wait_for("http://127.0.0.1:").split()[-1]
        server.wait_for("demands the tier fortified; this machine makes walled")
        link = await asyncio.to_thread(admin_link, tmp_path / "data", address)
        async with httpx.AsyncClient(
            base_url=address, timeout=DEADLINE_S, follow_redirects=True
        ) as client:
            for _ in range(2):  # a refusal is not forgotten by being looked at
                answer = await client.post("/api/runs", json={"source": "print(1)", "ranks": 1})
                assert answer.status_code == 503, answer.text
                assert "demands the tier fortified" in answer.text
                page = (await client.get(link)).text
                assert "Runs are refused." in page
                assert "demands the tier fortified" in page
            assert "Programs cannot run here." in (await client.get(LESSON)).text
    finally:
        assert await asyncio.to_thread(server.stop) == 0


def admin_link(data_dir: Path, address: str) -> str:
    command = [sys.executable, "-m", "app.cli", "admin-link", "--data-dir", str(data_dir)]
    said = subprocess.check_output([*command, "--site", address], cwd=ROOT, text=True)
    return said.strip()
