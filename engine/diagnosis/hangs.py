"""Rules for calls that never found all of their partners: who waits where, and who never came.

May import trace and the leaves.
"""

import ast
import signal

from engine.diagnosis import groups, sends, waits
from engine.diagnosis.causes import Cause, cause_of
from engine.diagnosis.pairing import Meeting, meetings, same_site
from engine.diagnosis.rule import Case, say
from engine.diagnosis.standing import Standing, call_name, calls_text, op_text, ranks_text
from engine.echo import is_lost, waited_ms
from engine.events import Collective, Diagnosis
from engine.facts import Args


def never_joined(case: Case) -> Diagnosis | None:
    """Names the first call to which not all ranks came, and what kept them away."""
    if not is_stuck(case):
        return None
    standing = Standing(case)
    meeting = next((m for m in meetings(case) if m.missing or m.difference), None)
    return (
        groups.not_made_together(standing)
        or sends.unmatched(standing)
        or (_came_too_late(standing, meeting) if meeting is None or not meeting.missing else None)
        or (_unlike(standing, meeting) if meeting is not None else None)
        or (None if _any_aborted(case) else _waits_alone(standing))
    )


def _any_aborted(case: Case) -> bool:
    return any(end.exit == -signal.SIGABRT and not end.failure for end in case.outcome.ranks)


def is_stuck(case: Case) -> bool:
    """Whether the run ended because ranks waited for partners that never came."""
    if case.outcome.status == "deadlock":
        return True
    ends = case.outcome.ranks
    # gloo aborts a rank whose peer sends what it does not expect.
    peaceful = (0, None, -signal.SIGABRT)
    by_itself = any(not is_lost(end.failure) and end.exit not in peaceful for end in ends)
    return (
        case.outcome.status == "error"
        and not by_itself
        and any(is_lost(end.failure) for end in ends)
    )


def _unlike(standing: Standing, meeting: Meeting) -> Diagnosis | None:
    cause = cause_of(standing, meeting, twins=False)
    if cause is None:
        found = (
            waits.after_an_exception(standing, meeting)
            or waits.in_a_ring(standing)
            or waits.gradients_not_ready(standing, meeting)
        )
        if found is not None:
            return found
        cause = cause_of(standing, meeting, twins=True)
    if cause is not None:
        return _say_cause(standing, meeting, cause)
    if meeting.missing and _any_aborted(standing.case):
        return None  # it did not stay away: it died
    call = _whose_wait(standing, meeting)
    missing = meeting.missing or tuple(
        rank for rank, other in meeting.calls.items() if not same_site(call, other)
    )
    if not missing:
        return None
    args: Args = {
        "rank": call.rank,
        "op": op_text(standing, call),
        "line": call.line,
        "missing": ranks_text(missing),
        "module": call.module,
        "where": standing.where,
        "calls": calls_text(meeting),
    }
    if _is_layers_own(standing, call):
        return say("layer-not-run", args, line=call.line, rank=missing[0])
    if not meeting.missing:
        return say("calls-differ", args, line=call.line, rank=call.rank)
    ended = [r for r in missing if (end := standing.end(r)) is not None and end.exit == 0]
    if not ended and (busy := waits.busy_elsewhere(standing, missing, args)) is not None:
        return busy
    code = "left-early" if len(ended) == len(missing) else "deadlock"
    return say(code, args, line=call.line, rank=missing[0] if ended else call.rank)


def _say_cause(standing: Standing, meeting: Meeting, cause: Cause) -> Diagnosis:
    call, place, jump = cause.call, cause.place, cause.jump
    args: Args = {
        "rank": call.rank,
        "op": op_text(standing, call),
        "line": call.line,
        "missing": ranks_text(cause.others),
        "at": place.header,
        "text": place.text,
        "jump": jump.line if jump else None,
        "keyword": jump.keyword if jump else None,
        "count": cause.num_mine,
        "fewer": cause.num_theirs,
        "where": standing.where if meeting.missing else calls_text(meeting),
    }
    if place.kind == "loop" and isinstance(place.node, ast.While):
        code = "uneven-while"
    elif place.kind == "loop":
        code = "uneven-loop" if jump is None else "uneven-loop-jump"
    else:
        code = "branch-not-entered" if place.kind == "branch" else "guard-not-passed"
    return say(code, args, line=call.line, rank=call.rank)


def _is_layers_own(standing: Standing, call: Collective) -> bool:
    """Whether a layer communicates of itself, not DDP and not a call that the learner wrote."""
    if not call.module or call.phase != "forward" or call.op == "broadcast":
        return False
    return not any(call_name(c).endswith(call.op) for c in standing.places.calls(call.line or 0))


def _whose_wait(standing: Standing, meeting: Meeting) -> Collective:
    """The call whose rank waits: a layer's own before the learner's, then the oldest."""
    waiting = [call for call in meeting.calls.values() if standing.waiting.get(call.rank) == call]
    return min(
        waiting,
        key=lambda call: (not _is_layers_own(standing, call), call.at_ns),
        default=meeting.first,
    )


def _came_too_late(standing: Standing, meeting: Meeting | None) -> Diagnosis | None:
    """A rank's own timeout was over before the others came to its call."""
    for end in standing.case.outcome.ranks:
        call = standing.waiting.get(end.rank)
        limit_ms = waited_ms(end.failure) if end.failure is not None else None
        if call is None or limit_ms is None:
            continue
        found = next((m for m in meetings(standing.case) if call in m.calls.values()), None)
        late = [] if found is None else [c for c in found.calls.values() if c.at_ns > call.at_ns]
        if found is None or found.missing or found.difference or not late:
            continue
        last = max(late, key=lambda c: c.at_ns)
        args: Args = {
            "rank": call.rank,
            "op": call.op,
            "line": call.line,
            "limit_ms": limit_ms,
            "missing": ranks_text([last.rank]),
            "late_ms": (last.at_ns - call.at_ns) // 1_000_000,
            "at": last.line,
            "where": standing.where,
        }
        return say("came-too-late", args, line=call.line, rank=last.rank)
    return None


def _waits_alone(standing: Standing) -> Diagnosis:
    """What is left: some rank waits, and the trace does not tell for whom."""
    case = standing.case
    call = min(standing.waiting.values(), key=lambda call: call.at_ns, default=None)
    if call is not None and call.op.startswith("all_to_all"):
        args: Args = {"op": call.op, "line": call.line, "where": standing.where}
        return say("splits-differ", args, line=call.line, rank=call.rank)
    end = next((end for end in case.outcome.ranks if end.stack or end.failure), None)
    trail = standing.trail(end.rank) if end is not None else ()
    line = call.line if call is not None else (trail[0] if trail else None)
    rank = call.rank if call is not None else (end.rank if end is not None else None)
    made = standing.making.get(rank) if rank is not None else None
    args = {
        "rank": rank,
        "op": call.op if call is not None else made or _called_on(case, line),
        "line": line,
        "missing": "its partner" if call is not None else "another rank",
        "where": standing.where,
    }
    return say("deadlock", args, line=line, rank=rank)


def _called_on(case: Case, line: int | None) -> str:
    """The call on a line, as the learner wrote it."""
    text = case.line_text(line).partition("(")[0].rpartition("=")[2].strip()
    return text or "a collective"
