"""`academy bench soak`: many runs of a real server that is struck in their midst.

May import serving, processes, holdings and the mix. The server has a data folder of its own. What
it must keep: every run ends as its program says, nothing is left of any, and no blow takes back
what a client has seen to end.
"""

import hashlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal

from app.bench.holdings import Holdings, Keeper, keeping
from app.bench.processes import (
    below,
    command_of,
    kill_hard,
    process_table,
    still_alive,
    supervisors,
    zygotes,
)
from app.bench.serving import Message, ServedSite
from app.bench.soak_mix import HELD, HELD_NAME, NORMAL, Kind, mix
from engine.errors import EngineCrashed

Victim = Literal["zygote", "supervisor", "server"]
VICTIMS: tuple[Victim, ...] = ("zygote", "supervisor", "server")
MIN_RUNS = 20
END_LIMIT_S = 20.0
"""How long what belonged to a killed server may take to end."""
_SLOTS = 2
_BURST = 4
_BURST_EVERY = 25
_WARM_UP = 4
_SETTINGS = {
    "ACADEMY_SLOTS": str(_SLOTS),
    "ACADEMY_RUNS_PER_LEARNER": "1000",
    "ACADEMY_DATABASE_URL": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    """What became of the runs; times are those of the normal ones, from request to outcome."""

    runs: int
    failed: int
    """Runs that ended otherwise than they had to."""
    leaks: int
    """Processes, descriptors, namespaces, mounts and the like beyond the start's."""
    lost: int
    """Runs that had been seen to end and were not found again, whole, after the server's death."""
    kills: int
    p50_ms: float
    p95_ms: float
    problems: tuple[str, ...]
    """What went wrong, in words."""


def measure_soak(num_runs: int, *, kills: bool, tell: Callable[[str], None]) -> SoakResult:
    """Carry out the runs. Raises: EngineCrashed, OSError when the server cannot serve any more."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        data_dir = Path(folder) / "data"
        with keeping(data_dir) as keeper, ServedSite(data_dir, _SETTINGS) as site:
            return Soak(site, keeper, tell).carry_out(num_runs, VICTIMS if kills else ())


class Soak:
    """One server's runs, one after the other, with a burst now and then."""

    def __init__(self, site: ServedSite, keeper: Keeper, tell: Callable[[str], None]) -> None:
        self.site = site
        self.keeper = keeper
        self.tell = tell
        self.digests: dict[str, str] = {}
        """What was seen of each run that has ended."""
        self.num_failed = 0
        self.num_lost = 0
        self.num_left_alive = 0
        self.num_kills = 0
        self.times_ms: list[float] = []
        self.problems: list[str] = []

    def carry_out(self, num_runs: int, victims: tuple[Victim, ...]) -> SoakResult:
        kinds = mix()
        for _ in range(_WARM_UP):
            self.one(next(kinds))
        base = self.keeper.settled(self.site.pid)
        strikes = {(i + 1) * num_runs // (len(victims) + 1): v for i, v in enumerate(victims)}
        next_burst = _BURST_EVERY
        while (done := len(self.digests)) < num_runs:
            self.tell(f"{done} of {num_runs} runs, {self.num_failed} failed")
            due = [at for at in strikes if at <= done]
            if due and num_runs - done >= _SLOTS:
                self.strike(strikes.pop(due[0]))
            elif done >= next_burst and num_runs - done >= _BURST:
                next_burst = done + _BURST_EVERY
                self.burst(kinds)
            else:
                self.one(next(kinds))
        return self.result(base)

    def result(self, base: Holdings) -> SoakResult:
        left = self.keeper.left_over(self.site.pid, base)
        self.problems += [f"left over: {num} {name}" for name, num in left.items()]
        return SoakResult(
            runs=len(self.digests),
            failed=self.num_failed,
            leaks=sum(left.values()) + self.num_left_alive,
            lost=self.num_lost,
            kills=self.num_kills,
            p50_ms=round(percentile(self.times_ms, 0.5), 1),
            p95_ms=round(percentile(self.times_ms, 0.95), 1),
            problems=tuple(self.problems),
        )

    # -------------------------------------------------------------- runs
    def one(self, kind: Kind) -> None:
        """A run with nothing beside it."""
        begin_s = time.perf_counter()
        self.see_through(self.site.begin(kind.source, kind.ranks), kind, (kind.status,))
        if kind is NORMAL:
            self.times_ms.append((time.perf_counter() - begin_s) * 1e3)

    def burst(self, kinds: Iterator[Kind]) -> None:
        """More runs at once than there are slots; the last is cancelled while it waits."""
        chosen = [next(kinds) for _ in range(_BURST)]
        begun = [self.site.begin(kind.source, kind.ranks) for kind in chosen]
        self.site.cancel(begun[-1])
        for run_id, kind in zip(begun[:-1], chosen, strict=False):
            self.see_through(run_id, kind, (kind.status,))
        self.see_through(begun[-1], chosen[-1], ("cancelled",))

    def see_through(self, run_id: str, kind: Kind, allowed: tuple[str, ...]) -> None:
        """Follow a run to its outcome, which has to be one of those."""
        seen, text, to_cancel = [], "", kind.cancel_after
        for message in self.site.follow(run_id):
            seen.append(message)
            text += message.text
            if to_cancel and to_cancel in text:
                self.site.cancel(run_id)
                to_cancel = ""
        self.note_end(run_id, kind, seen, allowed)

    def note_end(
        self, run_id: str, kind: Kind, seen: list[Message], allowed: tuple[str, ...]
    ) -> None:
        self.digests[run_id] = digest(seen)
        status = seen[-1].status if seen else ""
        if status not in allowed:
            self.num_failed += 1
            self.problems.append(f"{kind.name}: {status or 'no outcome'}, not {allowed[0]}")

    # -------------------------------------------------------------- blows
    def strike(self, victim: Victim) -> None:
        """Kill a part while as many runs go on as may."""
        self.tell(f"{len(self.digests)} runs: kill -9 of the {victim}")
        held = [run_id for _ in range(_SLOTS) if (run_id := self.hold())]
        self.num_kills += 1
        match victim:
            case "zygote":
                for zygote in zygotes(self.site.pid, process_table()):
                    kill_hard(zygote.pid)
                for run_id in held:  # supervisors live on, and so may what they watch
                    self.see_through(run_id, HELD, ("cancelled", "engine_failure"))
            case "supervisor":
                kill_hard(self.a_supervisor_at_work())
                self.see_struck(held)
            case "server":
                self.kill_server()
                for run_id in held:
                    self.see_through(run_id, HELD, ("engine_failure",))

    def hold(self) -> str | None:
        """A run that goes on until it is struck or cancelled; None if it has ended by itself."""
        run_id = self.site.begin(HELD.source, HELD.ranks)
        seen: list[Message] = []
        for message in self.site.follow(run_id):
            seen.append(message)
            if HELD.cancel_after in message.text:
                return run_id
        self.note_end(run_id, HELD, seen, ("cancelled",))
        return None

    def a_supervisor_at_work(self) -> int:
        """The pid of a supervisor whose run goes on. Raises: EngineCrashed."""
        table = process_table()
        for zygote in zygotes(self.site.pid, table):
            for supervisor in supervisors(zygote, table):
                if any(HELD_NAME in command_of(p.pid) for p in below(supervisor.pid, table)):
                    return supervisor.pid
        raise EngineCrashed("no supervisor has a run")

    def see_struck(self, held: list[str]) -> None:
        """Exactly one of the runs has lost its supervisor; the others go on."""
        ended: list[str] = []
        while held and not ended:
            ended = [run_id for run_id in held if '"ended"' in self.site.state(run_id)]
        for run_id in held:
            allowed = "engine_failure" if run_id in ended[:1] else "cancelled"
            self.see_through(run_id, HELD, (allowed,))

    def kill_server(self) -> None:
        """Kill the server, see its processes end, and serve again as a service manager would."""
        mine = {process.identity for process in self.site.processes()}
        self.site.kill()
        alive = still_alive(mine, END_LIMIT_S)
        self.num_left_alive += len(alive)
        if alive:
            self.problems.append(f"{len(alive)} processes outlived their server")
        self.site.start()
        for run_id, was in self.digests.items():
            try:
                now = digest(list(self.site.follow(run_id)))
            except (OSError, HTTPException):
                now = ""
            if now != was:
                self.num_lost += 1
                self.problems.append(f"run {run_id} is not what it was before the server died")


def digest(messages: list[Message]) -> str:
    """What tells one run's events from any others."""
    found = hashlib.sha256()
    for message in messages:
        found.update(f"{message.position} {message.data}\n".encode())
    return found.hexdigest()


def percentile(values: list[float], share: float) -> float:
    """The smallest of the values that so large a share does not exceed; 0 without values."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0
