"""Why one rank made a call that another did not: a branch, a guard, a loop left earlier.

May import trace and the leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.diagnosis.pairing import Meeting, count
from engine.diagnosis.places import Jump, Place
from engine.diagnosis.standing import Standing
from engine.events import Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The place of the program that one rank was in and the others were not."""

    call: Collective
    """The call that lacks its partners."""
    others: tuple[int, ...]
    """The ranks that did not make it."""
    place: Place
    jump: Jump | None
    num_mine: int
    num_theirs: int
    """How often the rank, and the first of the others, came to the call."""


def cause_of(standing: Standing, meeting: Meeting, *, twins: bool) -> Cause | None:
    """The innermost place that explains a meeting to which not all ranks came alike.

    twins: also a branch of which another arm makes the very same call. Whoever is in that arm is
    not kept away by the branch, so this is the explanation only where there is no other.
    """
    # Who is in a branch that names a rank is the plainest explanation, then any other.
    found = [
        cause
        for call in sorted(meeting.calls.values(), key=lambda call: call.rank)
        if (cause := _for_call(standing, meeting, call, twins=twins)) is not None
    ]
    return min(found, key=_order, default=None)


def _order(cause: Cause) -> tuple[bool, bool]:
    return cause.place.kind != "loop" and not cause.place.names_rank, cause.place.kind == "guard"


def _for_call(
    standing: Standing, meeting: Meeting, call: Collective, *, twins: bool
) -> Cause | None:
    others = [rank for rank, c in meeting.calls.items() if not _joined(standing, call, c)]
    others += meeting.missing
    if not others:
        return None
    trail = standing.trail(call.rank) if call.rank in standing.waiting else ()
    if not trail or trail[0] != call.line:
        trail = (call.line,) if call.line is not None else ()
    for other in others:
        theirs = _trail_of(standing, meeting, other)
        num_mine, num_theirs = _counts(standing, call, other)
        place = _unshared(standing, trail, theirs, num_theirs, twins=twins)
        if place is not None:
            return Cause(
                call=call,
                others=tuple(sorted(others)),
                place=place,
                jump=standing.places.jump(place) if place.kind == "loop" else None,
                num_mine=num_mine,
                num_theirs=num_theirs,
            )
    return None


def _joined(standing: Standing, call: Collective, other: Collective) -> bool:
    """Whether two ranks made one call: on one line, or as the same text in two arms of a branch."""
    if call.op != other.op or call.line == other.line:
        return call.op == other.op
    one, two = call.line or 0, other.line or 0
    text = standing.case.line_text
    return text(one) == text(two) and standing.places.are_alternatives(one, two)


def _trail_of(standing: Standing, meeting: Meeting, rank: int) -> tuple[int, ...]:
    """Where the other rank was: in its own call of this number, or at its end."""
    trail = standing.trail(rank)
    call = meeting.calls.get(rank)
    if call is None or call.line is None or call.line in trail:
        return trail
    return (call.line,)


def _counts(standing: Standing, call: Collective, other: int) -> tuple[int, int]:
    calls = standing.case.trace.collectives
    return count(calls, call.rank, call), count(calls, other, call)


def _unshared(
    standing: Standing,
    trail: Sequence[int],
    theirs: Sequence[int],
    num_theirs: int,
    *,
    twins: bool,
) -> Place | None:
    """The innermost place around the trail that the other rank was not in."""
    for line in trail:
        for place in standing.places.around(line):
            if place.holds(theirs):
                continue
            if place.kind == "loop" and not num_theirs:
                continue  # the other rank has never been in it: look further out
            if place.kind == "guard" and not place.names_rank:
                continue
            if not twins and standing.places.in_every_arm(place, line):
                continue
            return place
    return None
