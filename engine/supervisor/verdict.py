"""Decides how a run ended. May import events and the gather.

The order matters: why the supervisor itself stopped the run wins over what that did to the ranks,
and the first rank that failed wins over those that only lost their peer.
"""

import re
import signal
from collections.abc import Sequence
from typing import Literal

from engine.echo import is_echo
from engine.events import Failure, Frame, LimitName, Outcome, RankEnd, Status
from engine.reports import CollectiveReport
from engine.supervisor.gather import Gather
from engine.supervisor.rank_state import RankState

Stop = Literal[
    "wall",
    "cpu",
    "memory",
    "scratch",
    "output",
    "trace",
    "stall",
    "cancelled",
    "peer",
    "engine",
    "executor_gone",
]

_BY_STOP: dict[Stop, Status] = {
    "cpu": "timeout",
    "memory": "out_of_memory",
    "scratch": "error",
    "output": "output_limit",
    "trace": "output_limit",
    "stall": "deadlock",
    "cancelled": "cancelled",
    "executor_gone": "cancelled",
    "engine": "engine_failure",
}
_LIMITS: dict[Stop, LimitName] = {
    "wall": "wall",
    "cpu": "cpu",
    "memory": "memory",
    "scratch": "scratch",
    "output": "output",
    "trace": "trace",
}
_OUT_OF_MEMORY = re.compile(r"can't allocate memory|out of memory|not enough memory", re.I)
_SLEEP = re.compile(r"\bsleep\s*\(")


def judge(gather: Gather, stop: Stop | None, limit_cpu_s: int) -> tuple[Status, LimitName | None]:
    """The status of a run that has ended, and the limit that ended it."""
    if stop == "wall":
        waits = any_waits(gather) and len(gather.ranks) > 1
        return ("deadlock" if waits else "timeout"), "wall"
    if stop in _BY_STOP:
        return _BY_STOP[stop], _LIMITS.get(stop)
    if all(state.exit == 0 for state in gather.ranks):
        return "ok", None
    if stop is None and not all(state.has_ended for state in gather.ranks):
        return "engine_failure", None  # init died without a word about it
    if any(state.has_ended and not state.has_begun for state in gather.ranks):
        return "engine_failure", None  # it died before the program's first line
    if any(state.exit == -signal.SIGSYS for state in gather.ranks):
        return "sandbox_violation", None
    if any(_used_up_cpu(state, limit_cpu_s) for state in gather.ranks):
        return "timeout", "cpu"
    first = origin(gather)
    failure = gather.ranks[first].failure if first is not None else None
    if failure and is_out_of_memory(failure):
        return "out_of_memory", None
    return "error", None


def origin(gather: Gather) -> int | None:
    """The rank that the failure began on: the first that did not just lose a partner.

    Reports come in the order in which pipes are read, so an echo may be heard first.
    """
    first = gather.first_failed_rank
    if first is None or not _is_echo(gather.ranks[first]):
        return first
    others = (rank for rank, state in enumerate(gather.ranks) if _failed_by_itself(state))
    return next(others, first)


def _is_echo(state: RankState) -> bool:
    return state.failure is not None and is_echo(state.failure)


def _failed_by_itself(state: RankState) -> bool:
    if state.failure is not None:
        return not _is_echo(state)
    return state.has_ended and state.exit != 0


def is_out_of_memory(failure: Failure) -> bool:
    """Python's or torch's own refusal to allocate."""
    if failure.type in ("MemoryError", "OutOfMemoryError"):
        return True
    return failure.type == "RuntimeError" and bool(_OUT_OF_MEMORY.search(failure.message))


_CPU_ROUNDING_S = 1.0
"""RLIMIT_CPU counts whole seconds, and a little else than the supervisor's clock."""


def _used_up_cpu(state: RankState, limit_cpu_s: int) -> bool:
    ended_by_kernel = state.exit in (-signal.SIGXCPU, -signal.SIGKILL)
    return ended_by_kernel and state.cpu_s >= limit_cpu_s - _CPU_ROUNDING_S


def any_waits(gather: Gather) -> bool:
    """Whether some live rank is inside a collective, a receive or the making of a group."""
    return any(
        not state.has_ended and (state.pending or _is_in_distributed(gather.frames(rank)))
        for rank, state in enumerate(gather.ranks)
    )


def all_dumped(gather: Gather) -> bool:
    """Whether every rank that still lives has shown its stack."""
    return all(state.has_ended or state.stack_text for state in gather.ranks)


def is_deadlock(gather: Gather, filename: str, lines: Sequence[str]) -> bool:
    """Whether a run in which nothing moves can be called hung.

    A rank that sleeps on purpose may still come, so then only the wall limit decides.
    """
    if not any_waits(gather) or _all_wait_together(gather, filename):
        return False
    for rank, state in enumerate(gather.ranks):
        if state.has_ended or state.pending:
            continue
        frames = gather.frames(rank)
        if not frames and not state.has_finished:
            return False  # no dump came: nothing is known of this rank
        own = learner_frames(frames, filename)
        if not own:
            continue
        line = lines[own[0].line - 1] if 0 < own[0].line <= len(lines) else ""
        if _SLEEP.search(line):
            return False
    return True


def _all_wait_together(gather: Gather, filename: str) -> bool:
    """Whether every rank is in the very same call: then nobody is missing, it is only slow."""
    places: set[tuple[str | int | None, ...]] = set()
    calls: list[CollectiveReport] = []
    for rank, state in enumerate(gather.ranks):
        if state.has_ended or state.has_finished:
            return False
        frames = gather.frames(rank)
        if state.pending:
            call = min(state.pending.values(), key=lambda c: c.at_ns)
            places.add((call.op, call.group, call.group_seq, call.peer, *_brings(call)))
            calls.append(call)
        elif _is_in_distributed(frames):
            own = learner_frames(frames, filename)
            places.add((own[0].line if own else None,))
        else:
            return False
    return len(places) == 1 and _has_one_root(calls)


def _has_one_root(calls: Sequence[CollectiveReport]) -> bool:
    """Whether the ranks agree on who sends or gets everything, where it takes one."""
    if not calls or calls[0].op not in ("broadcast", "reduce"):
        return True
    sends = calls[0].op == "broadcast"
    sizes = [call.input_bytes if sends else call.output_bytes for call in calls]
    is_empty = not any(call.input_bytes or call.output_bytes for call in calls)
    return sum(size > 0 for size in sizes) == 1 or is_empty


def _brings(call: CollectiveReport) -> tuple[str | int | None, ...]:
    """What all members of a call must bring alike; other than that, it can never end."""
    match call.op:
        case "all_reduce" | "reduce" | "gather":
            return call.dtype, call.input_bytes
        case "broadcast" | "scatter":
            return call.dtype, call.output_bytes
    return (call.dtype,)


def learner_frames(frames: Sequence[tuple[str, Frame]], filename: str) -> tuple[Frame, ...]:
    """The frames that lie in the program, innermost first."""
    return tuple(frame for file, frame in frames if file == filename)[:40]


def _is_in_distributed(frames: Sequence[tuple[str, Frame]]) -> bool:
    return any("/torch/distributed/" in file for file, _ in frames[:12])


def make_outcome(
    gather: Gather, stop: Stop | None, limit_cpu_s: int, filename: str, cpu_s: float
) -> Outcome:
    """The last event of a run; `cpu_s` is what all of its processes used."""
    status, limit = judge(gather, stop, limit_cpu_s)
    ranks = tuple(
        RankEnd(
            rank=rank,
            exit=state.exit,
            cpu_s=state.cpu_s,
            peak_bytes=state.peak_bytes,
            stack=learner_frames(gather.frames(rank), filename),
            failure=state.failure,
        )
        for rank, state in enumerate(gather.ranks)
    )
    return Outcome(
        rank=-1,
        seq=gather.next_seq(-1),
        at_ns=gather.now_ns(),
        status=status,
        ranks=ranks,
        diagnosis=(),
        elapsed_s=round(gather.now_ns() / 1e9, 6),
        dropped_events=sum(state.num_dropped for state in gather.ranks),
        first_failed_rank=origin(gather),
        cpu_s=round(cpu_s, 4),
        limit=limit,
    )
