"""Rules for ranks that ended and left partners behind: they point at the rank that went first.

May import trace and the leaves.
"""

import re
import signal

from engine.diagnosis.rule import Case, say
from engine.diagnosis.standing import Standing
from engine.echo import is_lost
from engine.events import Diagnosis, Failure
from engine.facts import Args

_MAX_DETAIL = 300
_RAISED = re.compile(r"\w*(Error|Exception)\b.*:", re.ASCII)


def left_behind(case: Case) -> Diagnosis | None:
    """One rank failed by itself, and others failed or waited only because it was gone."""
    end = case.first_failed
    ends = case.outcome.ranks
    if case.outcome.status != "error" or end is None or is_lost(end.failure):
        return None
    others = [other for other in ends if other is not end]
    if not others or not all(is_lost(other.failure) or other.exit in (0, None) for other in others):
        return None
    if not any(is_lost(other.failure) or other.stack for other in others):
        return None
    standing = Standing(case)
    failure = end.failure
    where = standing.where_are([other.rank for other in others])
    args: Args = {"rank": end.rank, "where": where}
    if failure is not None and failure.line is not None:
        detail = detail_of(failure)
        args = {**args, "type": failure.type, "line": failure.line, "detail": detail}
        return say("peers-left-behind", args, line=failure.line, rank=end.rank)
    if failure is not None or end.exit in (0, None) or end.exit is None:
        return None
    if end.exit > 0:
        args = {**args, "exit": end.exit}
        return say("rank-exited-alone", args, rank=end.rank)
    args = {**args, "signal": signal_name(-end.exit)}
    if end.exit != -signal.SIGABRT:
        return say("rank-killed-alone", args, rank=end.rank)
    return aborted(case, end.rank)


def aborted(case: Case, rank: int) -> Diagnosis | None:
    """A rank was aborted inside of torch: says in which call, unless it made none."""
    own = [call for call in case.trace.collectives if call.rank == rank]
    if not own:
        return None
    last = max(own, key=lambda call: call.at_ns)
    args: Args = {
        "rank": rank,
        "signal": signal.SIGABRT.name,
        "op": last.op,
        "line": last.line,
        "where": Standing(case).where,
    }
    # Sums may agree where the parts do not, so only gloo's own check has seen the difference.
    code = "splits-differ" if last.op.startswith("all_to_all") else "rank-aborted"
    return say(code, args, line=last.line, rank=rank)


def detail_of(failure: Failure, max_characters: int = _MAX_DETAIL) -> str:
    """What an exception says, on one line, cut; of a traceback in it only its end."""
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    nested = [line for line in lines if _RAISED.match(line)]
    if nested and any(line.startswith("Traceback (most recent") for line in lines):
        lines = nested[-1:]
    text = " ".join(lines)
    return text if len(text) <= max_characters else text[: max_characters - 3] + "..."


def signal_name(number: int) -> str:
    """SIGKILL for 9; the number where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
