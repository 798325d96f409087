"""Puts a fidelity program together and reads what its ranks printed. May import tests.engine."""

import json
import math
from pathlib import Path

from engine.program import Limits
from tests.engine.conftest import Ran

PROGRAMS = Path(__file__).parents[1] / "torch_programs"
PATIENT = Limits(wall_s=90, cpu_s=120, stall_s=20, trace_events=1_000_000)
"""For programs of many checks on a machine that other tests keep busy."""

Row = dict[str, object]


def source(*parts: str) -> str:
    """One program from files of torch_programs, in order; what is no file's name is source."""
    return "\n".join(
        (PROGRAMS / part).read_text() if part.endswith(".py") else part for part in parts
    )


def rows(ran: Ran, rank: int = 0) -> list[Row]:
    """The JSON objects that a rank printed, one a line; the run must have gone well."""
    assert ran.outcome.status == "ok", everything(ran)
    lines = ran.text(rank).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def everything(ran: Ran) -> str:
    """All that the ranks wrote and the engine said, for a failing test to show."""
    written = [
        f"[{end.rank}] {ran.text(end.rank)}{ran.text(end.rank, 'stderr')}"
        for end in ran.outcome.ranks
    ]
    return "\n".join([ran.outcome.status, *(d.message for d in ran.outcome.diagnosis), *written])


def gaps(ran: Ran) -> dict[str, float]:
    """By check, the largest absolute difference on any rank."""
    found: dict[str, float] = {}
    for row in rows(ran):
        check, difference = row["check"], row["difference"]
        assert isinstance(check, str)
        assert isinstance(difference, (int, float))
        assert check not in found, f"{check} ran twice"
        found[check] = math.inf if math.isnan(difference) else difference
    return found
