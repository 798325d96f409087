"""What a rank tells of itself, held against what others tell: before a check sees any of it.

May import trace, diagnosis' pairing of calls and the leaves. A rank can write what it likes on its
own trace pipe, so one alone proves nothing; what all ranks tell alike remains forgeable.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from engine.diagnosis.pairing import Difference, Meeting, is_collective
from engine.events import Collective, Outcome
from engine.facts import Args, CheckResult
from engine.grading_messages import RESULTS
from engine.messages import render
from engine.program import MIB, Program
from engine.trace import Trace

_MEMORY_SLACK_BYTES = 64 * MIB
"""What a rank may hold besides tensors: Python's own objects, backends, torch's allocator."""
_LIES: tuple[Difference, ...] = ("op", "root", "dtype", "size")
"""Differences that a run which ended well cannot have had."""
_MOST = 8
_Key = tuple[str, tuple[int, ...]]


def cross_check(program: Program, trace: Trace, outcome: Outcome) -> tuple[CheckResult, ...]:
    """Where the ranks' reports contradict each other or the supervisor; each a failed result.

    A run that did not end well has calls that never met, so there only gaps are looked for. One
    simulated process has nobody to be held against.
    """
    found: list[CheckResult] = []
    if outcome.dropped_events:
        found.append(failed("trace-dropped", {"count": outcome.dropped_events}))
    if program.detail == "off" or program.simulated_ranks is not None:
        return tuple(found)
    found += _gaps(trace.collectives)
    if outcome.status == "ok" and not found:
        found += _differences(trace.collectives)
        found += _one_sided(trace.collectives)
        if trace.started is not None and trace.started.device == "cpu":
            found += _hidden_memory(trace, outcome)
    return tuple(found[:_MOST])


def failed(code: str, args: Args) -> CheckResult:
    """The failed result of a code."""
    message = render(RESULTS[code], args)
    return CheckResult(id=code, is_passed=False, message=message, code=code, args=args)


def _gaps(calls: list[Collective]) -> Iterator[CheckResult]:
    """Numbers of calls within a group are those from 0 on, each once, on each rank."""
    numbers: dict[tuple[int, _Key, bool], list[int]] = defaultdict(list)
    for call in calls:
        key = (call.group, call.group_ranks)
        numbers[call.rank, key, is_collective(call)].append(call.group_seq)
    for (rank, (group, members), _), seen in numbers.items():
        wrong = [number for number, told in enumerate(sorted(seen)) if number != told]
        if wrong or rank not in members:
            number = wrong[0] if wrong else 0
            yield failed("trace-gap", {"rank": rank, "number": number, "group": group[:60]})


def _differences(calls: list[Collective]) -> Iterator[CheckResult]:
    """Every member of a group reports the same calls, with the same bytes."""
    met: dict[tuple[_Key, int], dict[int, Collective]] = defaultdict(dict)
    for call in calls:
        if is_collective(call):
            met[(call.group, call.group_ranks), call.group_seq][call.rank] = call
    for ((group, members), number), by_rank in met.items():
        meeting = Meeting(group_ranks=members, calls=by_rank)
        if meeting.missing or meeting.difference in _LIES:
            ranks = ", ".join(map(str, meeting.missing or sorted(by_rank)))
            yield failed("trace-differs", {"ranks": ranks, "number": number, "group": group[:60]})


def _one_sided(calls: list[Collective]) -> Iterator[CheckResult]:
    """What one rank received, another sent; a receive from anybody takes what is left over."""
    sent: Counter[tuple[int, int, int]] = Counter()
    received: Counter[tuple[int, int, int]] = Counter()
    takers: set[int] = set()
    for call in calls:
        if call.op == "send" and call.peer is not None:
            sent[call.rank, call.peer, call.input_bytes] += 1
        elif call.op == "recv" and call.peer is None:
            takers.add(call.rank)
        elif call.op == "recv" and call.peer is not None and call.duration_ns is not None:
            received[call.peer, call.rank, call.output_bytes] += 1
    for source, target, _ in received - sent:
        yield failed("trace-one-sided", {"rank": target, "op": "recv", "peer": source})
    for source, target, _ in sent - received:
        if target not in takers and not _may_be_unread(calls, source, target):
            yield failed("trace-one-sided", {"rank": source, "op": "send", "peer": target})


def _may_be_unread(calls: list[Collective], source: int, target: int) -> bool:
    """Whether some send or receive between the two has no end: nobody waited for it."""
    return any(
        call.duration_ns is None
        for call in calls
        if not is_collective(call) and {call.rank, call.peer} == {source, target}
    )


def _hidden_memory(trace: Trace, outcome: Outcome) -> Iterator[CheckResult]:
    """No rank was seen to hold much more than the most it says it held."""
    told: dict[int, int] = {}
    for memory in trace.memory:
        told[memory.rank] = max(told.get(memory.rank, 0), memory.peak_bytes)
    for peak in trace.peaks.values():
        told[peak.rank] = max(told.get(peak.rank, 0), peak.peak_bytes)
    for end in outcome.ranks:
        most_bytes = told.get(end.rank, 0)
        if end.peak_bytes <= 2 * most_bytes + _MEMORY_SLACK_BYTES:
            continue
        args: Args = {
            "rank": end.rank,
            "told_mib": most_bytes // MIB,
            "measured_mib": end.peak_bytes // MIB,
        }
        yield failed("trace-memory", args)
