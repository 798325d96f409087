"""Rules for ranks that all make the right calls, and still wait: a ring of groups, DDP's buckets.

May import trace and the leaves.
"""

from engine.diagnosis.pairing import Meeting, is_collective, meetings
from engine.diagnosis.rule import say
from engine.diagnosis.standing import Standing, call_name, ranks_text
from engine.events import Collective, Diagnosis
from engine.facts import Args

_MAX_TEXT = 80


def after_an_exception(standing: Standing, meeting: Meeting) -> Diagnosis | None:
    """A rank communicates where an exception took it, while another waits where it came from."""
    for call in meeting.calls.values():
        for end in standing.case.outcome.ranks:
            trail = standing.trail(end.rank)
            if end.rank == call.rank or not trail or call.line is None:
                continue
            rescue = standing.places.rescue(call.line, trail[0])
            if rescue is None:
                continue
            args: Args = {
                "rank": call.rank,
                "op": call.op,
                "line": call.line,
                "missing": ranks_text([end.rank]),
                "keyword": rescue.keyword,
                "at": rescue.line,
                "where": standing.where,
            }
            return say("waits-after-exception", args, line=trail[0], rank=end.rank)
    return None


def busy_elsewhere(standing: Standing, missing: tuple[int, ...], args: Args) -> Diagnosis | None:
    """A missing rank is alive, and in no call of torch.distributed: says what it is doing."""
    for rank in missing:
        end, trail = standing.end(rank), standing.trail(rank)
        if end is None or not end.stack or rank in standing.waiting or rank in standing.making:
            continue
        text = standing.case.line_text(trail[0])
        more: Args = {"peer": rank, "at": trail[0], "text": text[:_MAX_TEXT]}
        return say("busy-elsewhere", {**args, **more}, line=trail[0], rank=rank)
    return None


def in_a_ring(standing: Standing) -> Diagnosis | None:
    """Ranks wait for each other in a ring, each in a call of another group."""
    absent = {
        rank: meeting.missing
        for meeting in meetings(standing.case)
        for rank, call in meeting.calls.items()
        if standing.waiting.get(rank) == call and is_collective(call)
    }
    for start in sorted(absent):
        ring = _ring_from(start, absent)
        calls = [standing.waiting[rank] for rank in ring]
        if len({call.group_ranks for call in calls}) > 1:
            return _say_ring(standing, calls)
    return None


def _ring_from(start: int, absent: dict[int, tuple[int, ...]]) -> list[int]:
    """The shortest way along the ranks waited for that leads back to its start; else empty."""
    paths = [[start]]
    seen: set[int] = set()
    while paths:
        path = paths.pop(0)
        for rank in absent.get(path[-1], ()):
            if rank == start:
                return path
            if rank not in seen:
                seen.add(rank)
                paths.append([*path, rank])
    return []


def _say_ring(standing: Standing, calls: list[Collective]) -> Diagnosis:
    first, second = calls[0], calls[1]
    args: Args = {
        "rank": first.rank,
        "op": first.op,
        "line": first.line,
        "who": ranks_text(first.group_ranks),
        "missing": ranks_text([second.rank]),
        "at": second.line,
        "waiting": ranks_text(second.group_ranks),
        "where": standing.where,
    }
    return say("groups-out-of-order", args, line=first.line, rank=first.rank)


def gradients_not_ready(standing: Standing, meeting: Meeting) -> Diagnosis | None:
    """DDP reduces on one rank, and on another went past the backward without a reduction."""
    reducing = [call for call in meeting.calls.values() if _is_ddps_own(standing, call)]
    if not reducing:
        return None
    call = min(reducing, key=lambda call: call.at_ns)
    others = [rank for rank, other in meeting.calls.items() if other.line != call.line]
    others = sorted({*others, *meeting.missing} - {other.rank for other in reducing})
    if not others or not all(_went_past(standing, rank, call) for rank in others):
        return None
    args: Args = {
        "rank": call.rank,
        "op": call.op,
        "line": call.line,
        "missing": ranks_text(others),
        "where": standing.where,
    }
    return say("gradients-not-ready", args, line=call.line, rank=others[0])


def _is_ddps_own(standing: Standing, call: Collective) -> bool:
    if call.op != "all_reduce" or call.phase != "backward":
        return False
    if "DistributedDataParallel" not in standing.case.program.source:
        return False
    return not any(
        call_name(c).rpartition(".")[2] in ("all_reduce", "reduce")
        for c in standing.places.calls(call.line or 0)
    )


def _went_past(standing: Standing, rank: int, call: Collective) -> bool:
    """Whether a rank has left the line of the backward behind in the same round."""
    end = standing.end(rank)
    if end is not None and end.exit == 0:
        return True
    last = max(
        (c for c in standing.case.trace.collectives if c.rank == rank),
        key=lambda c: c.at_ns,
        default=None,
    )
    trail = standing.trail(rank)
    at = trail[0] if trail else (last.line if last is not None else None)
    return at is not None and call.line is not None and at > call.line
