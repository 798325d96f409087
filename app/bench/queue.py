"""`academy bench queue`: a class presses Run at once, while others read.

May import serving, soak_mix and identity. Two rounds on one server: in the first every learner
brings one run; in the second one of them comes first and brings many. Fair turns make both rounds
equally long for everybody else. All the while somebody loads a lesson's page over and over.
"""

import asyncio
import json
import re
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from app.bench.serving import ServedSite
from app.bench.soak_mix import NORMAL
from app.identity import COOKIE, Identity
from engine.errors import EngineCrashed

GREEDY_RUNS = 20
_SERVED_LIMIT_S = 600.0
_READ_LIMIT_S = 30.0
_LESSON = re.compile(r'href="(/en/lessons/[a-z0-9-]+)"')
_STATUS_OK = "ok"
_PAGE_EVERY_S = 0.05
_IDLE_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResult:
    """What a class saw that pressed Run at once."""

    learners: int
    served: int
    """Learners whose own run ended ok, in the round in which one of them is greedy."""
    max_wait_ratio: float
    """The longest wait of the others beside a greedy learner, over that of a class without."""
    overtaken: int
    """Runs of the greedy learner that ended before the last of the others' runs."""
    longest_wait_s: float
    """From pressing Run to the outcome, without a greedy learner."""
    other_page_p95_ms: float
    """Of a lesson's page, while the runs went on."""
    idle_page_p95_ms: float
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """One run as its learner saw it."""

    is_ok: bool
    wait_s: float
    ended_at_s: float


def measure_queue(num_learners: int, tell: Callable[[str], None]) -> QueueResult:
    """Serve both rounds. Raises: EngineCrashed, OSError."""
    secret = secrets.token_urlsafe(32)
    settings = {
        "ACADEMY_SECRET_KEY": secret,
        "ACADEMY_RUNS_PER_LEARNER": str(GREEDY_RUNS),
        "ACADEMY_DATABASE_URL": "",
    }
    with tempfile.TemporaryDirectory(prefix="academy-bench-") as folder:
        tell("starting a server")
        with ServedSite(Path(folder), settings) as site:
            return _Class(site.address, Identity(secret), num_learners, tell).result()


class _Class:
    """The learners of one benchmark, each with a cookie of their own."""

    def __init__(
        self, address: str, identity: Identity, num_learners: int, tell: Callable[[str], None]
    ) -> None:
        self.host = urlsplit(address).netloc
        self.cookies = [identity.cookie_of(secrets.token_hex(16)) for _ in range(num_learners)]
        self.tell = tell

    def result(self) -> QueueResult:
        num = len(self.cookies)
        asyncio.run(self.round(num_first=1, num_others=1))  # what only a first run takes
        with _Reader(self.host) as idle:
            asyncio.run(asyncio.sleep(_IDLE_S))
        with _Reader(self.host) as reader:
            self.tell(f"{num} learners, one run each")
            _, alone = asyncio.run(self.round(num_first=1, num_others=num - 1))
            self.tell(f"{num} learners, of whom one brings {GREEDY_RUNS} runs")
            greedy, others = asyncio.run(self.round(num_first=GREEDY_RUNS, num_others=num - 1))
        last_s = max(served.ended_at_s for served in others)
        longest_s = max(served.wait_s for served in alone)
        return QueueResult(
            learners=num,
            served=sum(s.is_ok for s in others) + any(s.is_ok for s in greedy),
            max_wait_ratio=round(max(s.wait_s for s in others) / longest_s, 3),
            overtaken=sum(s.ended_at_s < last_s for s in greedy),
            longest_wait_s=round(longest_s, 2),
            other_page_p95_ms=_p95_ms(reader.times_s),
            idle_page_p95_ms=_p95_ms(idle.times_s),
            pages=len(reader.times_s),
        )

    async def round(self, num_first: int, num_others: int) -> tuple[list[_Served], list[_Served]]:
        """The first learner's runs, and one of each other's; all are on their way at once."""
        async with asyncio.timeout(_SERVED_LIMIT_S):
            first = [asyncio.create_task(self.run(self.cookies[0])) for _ in range(num_first)]
            await asyncio.sleep(0)  # their requests leave first
            others = [asyncio.create_task(self.run(c)) for c in self.cookies[1 : num_others + 1]]
            return await asyncio.gather(*first), await asyncio.gather(*others)

    async def run(self, cookie: str) -> _Served:
        """Press Run, and follow the page's stream to the end."""
        begin_s = time.perf_counter()
        body = json.dumps({"source": NORMAL.source, "ranks": NORMAL.ranks}).encode()
        reader, writer = await self.request(
            "POST /api/runs", cookie, body, f"Content-Length: {len(body)}\r\n"
        )
        answer = (await reader.read()).rpartition(b"\r\n\r\n")[2]
        writer.close()
        run_id = json.loads(answer).get("id")
        if run_id is None:
            raise EngineCrashed(f"no run was started: {answer[:300].decode()}")
        status = await self.follow(f"/en/runs/{run_id}/stream", cookie)
        ended_at_s = time.perf_counter()
        return _Served(
            is_ok=status == _STATUS_OK, wait_s=ended_at_s - begin_s, ended_at_s=ended_at_s
        )

    async def follow(self, path: str, cookie: str) -> str:
        """How the run ended, as the page's stream says."""
        reader, writer = await self.request(f"GET {path}", cookie)
        is_done, status = False, ""
        while not status and (line := await reader.readline()):
            if is_done and line.startswith(b"data: "):
                status = line.removeprefix(b"data: ").decode().strip()
            is_done = is_done or line.rstrip() == b"event: done"
        writer.close()
        return status

    async def request(
        self, what: str, cookie: str, body: bytes = b"", more: str = ""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.host.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        head = f"{what} HTTP/1.1\r\nHost: {self.host}\r\nCookie: {COOKIE}={cookie}\r\n"
        kind = "Content-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}{kind}{more}\r\n".encode() + body)
        return reader, writer


class _Reader:
    """Somebody who loads a lesson's page over and over, on a connection that stays."""

    def __init__(self, host: str) -> None:
        self.times_s: list[float] = []
        self._connection = HTTPConnection(host, timeout=_READ_LIMIT_S)
        self._is_over = Event()
        self._thread = Thread(target=self._read, daemon=True)
        found = _LESSON.search(self._page("/en/").decode())
        if found is None:
            raise EngineCrashed("the site has no lesson")
        self._path = found[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._connection.close()

    def _read(self) -> None:
        while not self._is_over.wait(_PAGE_EVERY_S):
            begin_s = time.perf_counter()
            self._page(self._path)
            self.times_s.append(time.perf_counter() - begin_s)

    def _page(self, path: str) -> bytes:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise EngineCrashed(f"{path} answered {answer.status}")
        return content


def _p95_ms(times_s: list[float]) -> float:
    return round(statistics.quantiles(times_s, n=20)[-1] * 1e3, 1)
