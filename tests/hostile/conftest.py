"""The hostile programs, and one run of all of them for each user and tier."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from tests.hostile.host import Hostile, Job, Level, Report
from tests.hostile.machine import NotHere, User, command

PROGRAMS = Path(__file__).parent / "programs"
_HEADER = re.compile(r"#\s*(ranks|timeout|outcome|not-says|host|stopped-by|tiers)\s*:\s*(.*?)\s*$")
_JOB_LIMIT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A hostile program and what its header says of it."""

    hostile: Hostile
    outcomes: frozenset[str]
    not_says: str
    stopped_by: tuple[str, ...]
    tiers: tuple[str, ...]
    """Where it is an attack at all; empty: everywhere."""


def describe(path: Path) -> Described:
    """Read a program; its header is not part of what runs, for it holds the answer."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    header: dict[str, str] = {}
    for line in lines:
        match = _HEADER.match(line)
        if not match:
            break
        header[match[1]] = match[2]
    source = "".join("#\n" if k < len(header) else line for k, line in enumerate(lines))
    beside = PROGRAMS.parent / f"{path.stem}.listener"
    return Described(
        hostile=Hostile(
            name=path.stem,
            source=source,
            num_ranks=int(header.get("ranks", "1")),
            timeout_s=float(header["timeout"]) if "timeout" in header else None,
            beside=beside.read_text(encoding="utf-8") if beside.exists() else None,
        ),
        outcomes=frozenset(header["outcome"].split("|")),
        not_says=header.get("not-says", "BREACH"),
        stopped_by=tuple(w.strip() for w in header["stopped-by"].split(",")),
        tiers=tuple(header["tiers"].split("|")) if "tiers" in header else (),
    )


DESCRIBED = {path.stem: describe(path) for path in sorted(PROGRAMS.glob("*.py"))}


Place = tuple[User, Level]


class Host:
    """Runs jobs, each once and two at a time, each in a machine of its own."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._jobs: dict[Place, Future[dict[str, Report]]] = {}

    def begin(self, place: Place, names: Sequence[str]) -> None:
        """Have these programs run there."""
        self._jobs[place] = self._pool.submit(_run_job, place, tuple(names))

    def report(self, place: Place, name: str) -> Report:
        """What came of one program. Skips the test where this machine has no such place."""
        try:
            reports = self._jobs[place].result()
        except NotHere as why:
            pytest.skip(str(why))
        if reports[""].tier != place[1]:
            problem = reports[""].problem or f"this machine makes the tier {reports[''].tier}"
            pytest.skip(problem)
        return reports[name]


def _run_job(place: Place, names: tuple[str, ...]) -> dict[str, Report]:
    user, tier = place
    hostile = tuple(DESCRIBED[name].hostile for name in names)
    done = subprocess.run(
        command(user, ["-m", "tests.hostile.host"], is_readable=tier == "fenced"),
        input=TypeAdapter(Job).dump_json(Job(tier=tier, programs=hostile)),
        capture_output=True,
        check=False,
        timeout=_JOB_LIMIT_S,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SITE_SECRET": "hunter2-topsecret"},
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    reports = (TypeAdapter(Report).validate_json(line) for line in done.stdout.splitlines())
    return {report.name: report for report in reports}


@pytest.fixture(scope="session")
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """All jobs that this session's tests ask for, begun together."""
    wanted: dict[Place, list[str]] = {}
    for item in request.session.items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if "place" in params:
            wanted.setdefault(params["place"], []).append(params["name"])
    with ThreadPoolExecutor(max_workers=2) as pool:
        host = Host(pool)
        for place, names in wanted.items():
            host.begin(place, names)
        yield host
