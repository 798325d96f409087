"""The rule for hangs: who waits in which call, and who never came."""

import re
from collections.abc import Sequence

from engine.diagnosis.rule import Case, say, where_ranks_were
from engine.events import Collective, Diagnosis

_MAKES_GROUP = re.compile(r"\b(new_group|new_subgroups|init_process_group|init_device_mesh)\s*\(")


def never_joined(case: Case) -> Diagnosis | None:
    """Names the oldest call that never ended and the members that never made it."""
    if case.outcome.status != "deadlock":
        return None
    waiting = [c for c in case.trace.collectives if c.duration_ns is None]
    where = where_ranks_were(case.outcome, _waiting_in(case, waiting))
    if not waiting:
        end = next((end for end in case.outcome.ranks if end.stack), None)
        frame = end.stack[0] if end else None
        line = frame.line if frame else None
        args = {
            "rank": end.rank if end else None,
            "op": _called_on(case, line),
            "line": line,
            "missing": "another rank",
            "where": where,
        }
        return say("deadlock", args, line=line, rank=end.rank if end else None)
    first = min(waiting, key=lambda c: c.at_ns)
    args = {
        "rank": first.rank,
        "op": first.op,
        "line": first.line,
        "missing": _missing(case, first),
        "where": where,
    }
    return say("deadlock", args, line=first.line, rank=first.rank)


def _waiting_in(case: Case, waiting: Sequence[Collective]) -> dict[int, str]:
    """What each rank waited in: the oldest call that never ended, else the making of a group."""
    found: dict[int, str] = {}
    for call in sorted(waiting, key=lambda c: c.at_ns):
        found.setdefault(call.rank, call.op)
    for end in case.outcome.ranks:
        made = _MAKES_GROUP.search(case.line_text(end.stack[0].line)) if end.stack else None
        if made:
            found.setdefault(end.rank, made[1])
    return found


def _missing(case: Case, call: Collective) -> str:
    """Members of the group that never made this call."""
    if call.peer is not None:
        return f"rank {call.peer}"
    came = {
        c.rank
        for c in case.trace.collectives
        if c.group == call.group and c.group_seq == call.group_seq and c.op == call.op
    }
    missing = [rank for rank in call.group_ranks if rank not in came]
    if not missing:
        return "its partner"
    return f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))}"


def _called_on(case: Case, line: int | None) -> str:
    """The call on a line, as the learner wrote it."""
    text = case.line_text(line).partition("(")[0].rpartition("=")[2].strip()
    return text or "a collective"
