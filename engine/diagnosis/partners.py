"""The rule for ranks that lost a partner: points at the rank that ended, not at who noticed."""

import re

from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args

_LOST = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|"
    r"Connection refused|recvValue failed|failed to recv",
    re.I,
)


def left_early(case: Case) -> Diagnosis | None:
    """Every failure is a lost connection, and at least one rank had ended well before it."""
    failed = [end for end in case.outcome.ranks if end.failure is not None]
    ended = [end.rank for end in case.outcome.ranks if end.failure is None and end.exit == 0]
    if case.outcome.status != "error" or not failed or not ended:
        return None
    if not all(end.failure and _LOST.search(end.failure.message) for end in failed):
        return None
    first = case.first_failed if case.first_failure else failed[0]
    failure = first.failure if first else None
    if first is None or failure is None or failure.line is None:
        return None
    waiting = [end.rank for end in failed]
    args: Args = {
        "who": _name(ended),
        "op": _op_at(case, first.rank, failure.line),
        "line": failure.line,
        "waiting": _name(waiting),
    }
    return say("left-early", args, line=failure.line, rank=ended[0])


def _name(ranks: list[int]) -> str:
    many = f"ranks {', '.join(map(str, ranks))}"
    return f"rank {ranks[0]}" if len(ranks) == 1 else many


def _op_at(case: Case, rank: int, line: int) -> str:
    """The newest call that the rank made on that line."""
    calls = [c for c in case.trace.collectives if c.rank == rank and c.line == line]
    return max(calls, key=lambda c: c.at_ns).op if calls else "a collective"
