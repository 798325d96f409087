"""Where every rank stood when a run ended, and how that is told.

May import trace and the leaves. A trail is a rank's learner lines, innermost first.
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.diagnosis.pairing import Meeting, brings, num_values
from engine.diagnosis.places import Places
from engine.diagnosis.rule import Case
from engine.echo import is_lost
from engine.events import Collective, RankEnd

_MAKES_GROUP = re.compile(
    r"(^|\.)(new_group|new_subgroups\w*|split_group|init_process_group|init_device_mesh)$"
)
_COMMUNICATES = re.compile(
    r"(^|\.)(dcp\.\w+|checkpoint\.(save|load)|async_save|\w*state_dict|full_tensor|redistribute|"
    r"clip_grad_norm_|summon_full_params|distribute_tensor|\w+_object(_list)?)$"
)
"""Calls whose name does not say that all ranks must make them together."""


@dataclass(frozen=True)
class Standing:
    """The ranks of one case at its end."""

    case: Case

    @cached_property
    def places(self) -> Places:
        """The program's branches and loops."""
        return Places(self.case.program.source)

    @cached_property
    def waiting(self) -> Mapping[int, Collective]:
        """The call that each rank was waiting in: the oldest that never ended, or that failed."""
        found: dict[int, Collective] = {}
        for end in self.case.outcome.ranks:
            own = [c for c in self.case.trace.collectives if c.rank == end.rank]
            if end.failure is not None and is_lost(end.failure):
                line = end.failure.line
                at_line = [c for c in own if c.line == line]
                if at_line:
                    found[end.rank] = max(at_line, key=lambda c: c.at_ns)
                elif own and ".wait(" in self.case.line_text(line):
                    # Made without waiting, on an earlier line: what failed is what ended last.
                    found[end.rank] = max(own, key=_ended_ns)
            elif end.failure is None and end.exit is None:
                open_calls = [c for c in own if c.duration_ns is None]
                if open_calls:
                    found[end.rank] = min(open_calls, key=lambda c: c.at_ns)
        return found

    @cached_property
    def making(self) -> Mapping[int, str]:
        """What each rank was making that is no collective: a group, by the call's name."""
        found: dict[int, str] = {}
        for end in self.case.outcome.ranks:
            trail = self.trail(end.rank)
            names = [call_name(call) for call in self.places.calls(trail[0])] if trail else []
            made = next((m[2] for name in names if (m := _MAKES_GROUP.search(name))), None)
            if made is not None and end.rank not in self.waiting:
                found[end.rank] = made
        return found

    def trail(self, rank: int) -> tuple[int, ...]:
        """The learner's lines that a rank was on; empty when it had ended."""
        end = self.end(rank)
        if end is None:
            return ()
        if end.stack:
            return tuple(frame.line for frame in end.stack)
        if end.failure is not None:
            lines = [frame.line for frame in reversed(end.failure.frames)]
            return tuple(lines or ([end.failure.line] if end.failure.line else []))
        if end.exit == 0:
            return ()
        own = [c for c in self.case.trace.collectives if c.rank == rank and c.line]
        last = max(own, key=lambda c: c.at_ns, default=None)
        return (last.line,) if last is not None and last.line else ()

    def end(self, rank: int) -> RankEnd | None:
        """How a rank ended."""
        return next((end for end in self.case.outcome.ranks if end.rank == rank), None)

    @cached_property
    def where(self) -> str:
        """All ranks: "rank 0 in barrier on line 17, rank 1 had ended"."""
        return self.where_are([end.rank for end in self.case.outcome.ranks])

    def where_are(self, ranks: Sequence[int]) -> str:
        """The same of some ranks."""
        ends = (end for end in self.case.outcome.ranks if end.rank in ranks)
        return ", ".join(self._where(end) for end in ends)

    def _where(self, end: RankEnd) -> str:
        trail = self.trail(end.rank)
        call = self.waiting.get(end.rank)
        op = call.op if call is not None else self.making.get(end.rank)
        line = trail[0] if trail else (call.line if call is not None else None)
        if end.failure is not None and not is_lost(end.failure):
            line = end.failure.line
            return f"rank {end.rank} failed on line {line}" if line else f"rank {end.rank} failed"
        if op is not None and line is not None:
            return f"rank {end.rank} in {op} on line {line}"
        if line is not None and (end.exit is None or end.failure is not None):
            return f"rank {end.rank} on line {line}"
        if end.exit is None:
            return f"rank {end.rank} outside the program"
        return f"rank {end.rank} was killed" if end.exit < 0 else f"rank {end.rank} had ended"


def _ended_ns(call: Collective) -> float:
    return math.inf if call.duration_ns is None else call.at_ns + call.duration_ns


def op_text(standing: Standing, call: Collective) -> str:
    """The op, and what the learner called that is made of it: "all_gather (dcp.save)"."""
    names = [call_name(c) for c in standing.places.calls(call.line or 0)]
    made = next((name for name in names if _COMMUNICATES.search(name)), None)
    return call.op if made is None else f"{call.op} ({made})"


def ranks_text(ranks: Sequence[int]) -> str:
    """ "rank 1", or "ranks 1, 3"."""
    many = ", ".join(map(str, sorted(ranks)))
    return f"rank {many}" if len(ranks) == 1 else f"ranks {many}"


def calls_text(meeting: Meeting) -> str:
    """Who called what: "rank 0 called all_gather on line 7 (layer bn), ranks 1, 2 called ..."."""
    by_call: dict[str, list[int]] = {}
    for rank, call in sorted(meeting.calls.items()):
        by_call.setdefault(_call_text(call), []).append(rank)
    return ", ".join(f"{ranks_text(ranks)} {text}" for text, ranks in by_call.items())


def _call_text(call: Collective) -> str:
    text = f"called {call.op}" + (f" on line {call.line}" if call.line is not None else "")
    more = [f"{num_values(call)} {call.dtype} values"] if brings(call) and call.dtype else []
    if call.module and call.phase == "forward":
        more.append(f"layer {call.module}")
    return f"{text} ({', '.join(more)})" if more else text


def call_name(call: ast.Call) -> str:
    """The name of what is called, with its dots; empty for what has none."""
    match call.func:
        case ast.Name() | ast.Attribute():
            return ast.unparse(call.func)
    return ""
