"""Pairs the collectives of different ranks as the backend does: by group, in the order of calls.

May import trace and the leaves. Sizes count values, as `numel` does.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.diagnosis.rule import Case
from engine.echo import is_lost
from engine.events import Collective

Difference = Literal["op", "layer", "root", "dtype", "size"]

_POINT_TO_POINT = ("send", "recv")
_BY_INPUT = ("all_reduce", "reduce", "all_gather", "reduce_scatter", "gather")
_BY_OUTPUT = ("broadcast", "scatter")
_ROOT_HAS_INPUT = ("broadcast", "scatter")
_ROOT_HAS_OUTPUT = ("reduce", "gather")
_ITEM_BYTES: Mapping[str, int] = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "complex128": 16,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """The calls that belong together: one number of one group, by rank."""

    group_ranks: tuple[int, ...]
    calls: Mapping[int, Collective]

    @property
    def first(self) -> Collective:
        """The call that was made first."""
        return min(self.calls.values(), key=lambda call: call.at_ns)

    @property
    def missing(self) -> tuple[int, ...]:
        """Members of the group that made no such call."""
        return tuple(rank for rank in self.group_ranks if rank not in self.calls)

    @property
    def is_one_site(self) -> bool:
        """Whether all ranks made the call on one line."""
        return len({call.line for call in self.calls.values()}) == 1

    @property
    def difference(self) -> Difference | None:
        """In what the calls differ though they must not."""
        calls = list(self.calls.values())
        if len({call.op for call in calls}) > 1:
            return "op"
        modules = {call.module for call in calls}
        if len(modules) > 1 and None not in modules and all(map(_is_layers_own, calls)):
            return "layer"
        if self._num_roots_is_wrong(calls):
            return "root"
        if len({call.dtype for call in calls if call.dtype is not None}) > 1:
            return "dtype"
        return "size" if len({num_values(call) for call in calls}) > 1 else None

    def _num_roots_is_wrong(self, calls: list[Collective]) -> bool:
        op = calls[0].op
        if op not in _ROOT_HAS_INPUT + _ROOT_HAS_OUTPUT or all(not brings(c) for c in calls):
            return False
        sizes = [c.input_bytes if op in _ROOT_HAS_INPUT else c.output_bytes for c in calls]
        num_roots = sum(size > 0 for size in sizes)
        return num_roots > 1 or (num_roots == 0 and not self.missing)


def _is_layers_own(call: Collective) -> bool:
    """Whether the layer itself made the call: DDP's buckets carry whatever layer came last."""
    if call.op in ("all_gather", "reduce_scatter"):
        return call.phase in ("forward", "backward")
    return call.op == "all_reduce" and call.phase == "forward"


def is_collective(call: Collective) -> bool:
    """Whether all members of the group take part, unlike in send and recv."""
    return call.op not in _POINT_TO_POINT


def meetings(case: Case) -> list[Meeting]:
    """All meetings of a run in the order in which they began.

    A call that torch refused on its rank never took part: the next one got its number.
    """
    found: dict[tuple[str, tuple[int, ...], int], dict[int, Collective]] = defaultdict(dict)
    refused = _refused(case)
    for call in sorted(case.trace.collectives, key=lambda call: call.at_ns):
        if is_collective(call) and call.rank in call.group_ranks and call not in refused:
            found[call.group, call.group_ranks, call.group_seq][call.rank] = call
    made = [Meeting(group_ranks=key[1], calls=calls) for key, calls in found.items()]
    return sorted(made, key=lambda meeting: meeting.first.at_ns)


def _refused(case: Case) -> list[Collective]:
    """The last call of each rank whose own exception came from that very line."""
    found = []
    for end in case.outcome.ranks:
        if end.failure is None or is_lost(end.failure):
            continue
        own = [call for call in case.trace.collectives if call.rank == end.rank]
        last = max(own, key=lambda call: call.at_ns, default=None)
        if last is not None and last.line == end.failure.line:
            found.append(last)
    return found


def brings(call: Collective) -> int:
    """Bytes that every member of the call must bring alike; 0 where they may differ."""
    if call.op in _BY_INPUT:
        return call.input_bytes
    return call.output_bytes if call.op in _BY_OUTPUT else 0


def num_values(call: Collective) -> int:
    """Number of values that every member must bring alike; bytes where the dtype is unknown."""
    return brings(call) // _ITEM_BYTES.get(call.dtype or "", 1)


def same_site(one: Collective, other: Collective) -> bool:
    """Whether two calls come from the same place of the program."""
    return (one.op, one.line, one.module) == (other.op, other.line, other.module)


def count(calls: Iterable[Collective], rank: int, like: Collective) -> int:
    """How often a rank has made a call of the same kind in the same place, up to that call."""
    return sum(
        call.rank == rank
        and same_site(call, like)
        and call.group == like.group
        and call.group_seq <= like.group_seq
        for call in calls
    )
