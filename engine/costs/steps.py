"""Where each training step of a rank begins and ends in its trace.

May import engine.{facts,trace}.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.facts import Phase
from engine.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpan:
    """One training step of one rank: from its first forward until the next step begins."""

    rank: int
    index: int
    start_ns: int
    end_ns: int | None
    """Where the next step begins; None for the last one."""

    def has(self, at_ns: int) -> bool:
        """Whether a moment lies in the step."""
        return self.start_ns <= at_ns and (self.end_ns is None or at_ns < self.end_ns)


def step_spans(trace: Trace, *, rank: int) -> tuple[StepSpan, ...]:
    """The training steps of one rank, in order.

    A step ends with the optimizer's step; in a program without optimizer, with backward. Several
    forwards and backwards before one optimizer step are one step.
    """
    marks = sorted(_marks(trace, rank))
    last: Phase = "step" if any(phase == "step" for _, phase in marks) else "backward"
    starts: list[int] = []
    before: Phase | None = last
    for at_ns, phase in marks:
        if before == last and phase != last:
            starts.append(at_ns)
        before = phase
    ends: list[int | None] = [*starts[1:], None]
    return tuple(
        StepSpan(rank=rank, index=index, start_ns=start_ns, end_ns=end_ns)
        for index, (start_ns, end_ns) in enumerate(zip(starts, ends, strict=False))
    )


def step_span(trace: Trace, *, rank: int, step: int) -> StepSpan:
    """One training step of one rank; negative numbers count from the last one.

    Raises: ValueError when the rank has no such step.
    """
    spans = step_spans(trace, rank=rank)
    if not -len(spans) <= step < len(spans):
        raise ValueError(f"step must be one of the {len(spans)} steps of rank {rank}, not {step}")
    return spans[step]


def _marks(trace: Trace, rank: int) -> Iterator[tuple[int, Phase]]:
    for events in (trace.collectives, trace.memory, trace.statistics):
        for event in events:
            if event.rank == rank and event.phase is not None:
                yield event.at_ns, event.phase
