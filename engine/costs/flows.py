"""What a training step sends: one Flow per kind of call, counted at the level of c10d ops.

May import engine.facts and engine.costs.ring.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from engine.costs.ring import sent_bytes
from engine.facts import Phase

FlowOp = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Elements that calls of one op carry in one step.

    num_elements counts whole tensors: what an all_gather ends with, what a reduce_scatter starts
    from, what an all_reduce or broadcast works on.
    """

    op: FlowOp
    phase: Phase
    num_elements: int
    group_size: int
    element_bytes: int = 4

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole tensors."""
        return self.num_elements * self.element_bytes

    @property
    def sent_bytes(self) -> Fraction:
        """Bytes on the wire that the busiest rank sends, as a ring. Source: `ring.sent_bytes`."""
        return sent_bytes(op=self.op, num_bytes=self.num_bytes, num_ranks=self.group_size)


def elements(flows: Iterable[Flow], op: FlowOp) -> int:
    """Elements of all flows of one op."""
    return sum(flow.num_elements for flow in flows if flow.op == op)


def volume(flows: Iterable[Flow]) -> int:
    """Elements with an all_reduce counted as two, as the ZeRO paper counts volume.

    Source: arXiv 1910.02054, section 7: an all_reduce is a reduce_scatter and an all_gather.
    """
    return sum(flow.num_elements * (2 if flow.op == "all_reduce" else 1) for flow in flows)
