"""Rules for ranks that do meet in a call, but not with the same one: silent or fatal.

May import trace and the leaves. gloo checks none of this: the result is a wrong sum, an aborted
process or a wait without end, and may differ from run to run.
"""

from collections import defaultdict
from itertools import pairwise

from engine.diagnosis import waits
from engine.diagnosis.hangs import is_stuck
from engine.diagnosis.pairing import Difference, Meeting, meetings
from engine.diagnosis.places import Places
from engine.diagnosis.rule import Case, say
from engine.diagnosis.standing import Standing, calls_text
from engine.events import Diagnosis
from engine.facts import Args

_CODES: dict[Difference, str] = {
    "root": "roots-differ",
    "dtype": "dtypes-differ",
    "size": "sizes-differ",
}
_ORDERLESS = ("all_reduce", "all_gather", "reduce_scatter")


def brought_unlike(case: Case) -> Diagnosis | None:
    """The ranks' calls pair up but bring other sizes or dtypes, or name other roots."""
    for meeting in meetings(case):
        difference = meeting.difference
        if difference is None:
            continue
        places = Places(case.program.source)
        if difference == "op" or not (meeting.is_one_site or _in_arms(places, meeting)):
            return _other_calls(case, places, meeting)
        if difference == "layer":
            return _say_layers(case, meeting)
        first = meeting.first
        args: Args = {"op": first.op, "line": first.line, "calls": calls_text(meeting)}
        return say(_CODES[difference], args, line=first.line, rank=first.rank)
    return None


def _in_arms(places: Places, meeting: Meeting) -> bool:
    """Whether the calls are alternatives to each other: one in each arm of a branch."""
    lines = sorted({call.line or 0 for call in meeting.calls.values()})
    return len(lines) > 1 and all(places.are_alternatives(a, b) for a, b in pairwise(lines))


def _other_calls(case: Case, places: Places, meeting: Meeting) -> Diagnosis | None:
    """Different calls in one place of the order."""
    if is_stuck(case):
        rescued = waits.after_an_exception(Standing(case), meeting)
        if rescued is not None or not _in_arms(places, meeting):
            return rescued  # the rule for hangs knows more about these
    first = meeting.first
    args: Args = {"calls": calls_text(meeting), "where": Standing(case).where}
    return say("calls-differ", args, line=first.line, rank=first.rank)


def _say_layers(case: Case, meeting: Meeting) -> Diagnosis:
    args: Args = {
        "op": meeting.first.op,
        "calls": calls_text(meeting),
        "where": Standing(case).where,
    }
    code = "layers-mixed" if case.outcome.status == "ok" else "layer-skipped"
    return say(code, args, line=meeting.first.line, rank=meeting.first.rank)


def mixed_silently(case: Case) -> Diagnosis | None:
    """A run that ended well although calls of different layers, or of other tensors, paired up."""
    if case.outcome.status != "ok":
        return None
    met = [m for m in meetings(case) if not m.missing]
    return _lines(case, met) or _crossed(case, met)


def _lines(case: Case, met: list[Meeting]) -> Diagnosis | None:
    """Calls of two lines met although both ranks run both lines, in no two arms of a branch."""
    # The same line may serve several groups: what a rank runs is told for each apart.
    lines: dict[tuple[int, ...], set[int | None]] = defaultdict(set)
    for meeting in met:
        for rank, call in meeting.calls.items():
            lines[rank, *meeting.group_ranks].add(call.line)
    places: Places | None = None
    seen: set[tuple[int, int]] = set()
    for meeting in met:
        first, *rest = meeting.calls.values()
        for other in rest:
            one, two = first.line, other.line
            if one is None or two is None or one == two or (one, two) in seen:
                continue
            group = meeting.group_ranks
            if two not in lines[first.rank, *group] or one not in lines[other.rank, *group]:
                continue
            seen.add((one, two))
            places = places or Places(case.program.source)
            if not places.apart(one, two):
                return _say_order(meeting)
    return None


def _crossed(case: Case, met: list[Meeting]) -> Diagnosis | None:
    """Two arms of a branch make the same two calls in opposite order."""
    places: Places | None = None
    for now, then in pairwise(met):
        if now.group_ranks != then.group_ranks:
            continue
        texts = {
            rank: (case.line_text(call.line), case.line_text(then.calls[rank].line))
            for rank, call in now.calls.items()
            if call.op in _ORDERLESS
        }
        swapped = {(b, a) for a, b in texts.values() if a != b} & set(texts.values())
        if not swapped:
            continue
        places = places or Places(case.program.source)
        if all(_in_one_arm(places, now, then, rank) for rank in texts):
            return _say_order(now)
    return None


def _in_one_arm(places: Places, now: Meeting, then: Meeting, rank: int) -> bool:
    one, two = now.calls[rank].line, then.calls[rank].line
    return one is not None and two is not None and places.suite(one) == places.suite(two)


def _say_order(meeting: Meeting) -> Diagnosis:
    first = meeting.first
    args: Args = {"op": first.op, "calls": calls_text(meeting)}
    return say("order-differs", args, line=first.line, rank=first.rank)
