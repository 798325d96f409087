"""What one rank of a real run holds beside its prediction, the difference explained by name.

May import engine.{facts,events,trace} and engine.costs.
"""

from dataclasses import dataclass
from fractions import Fraction

from engine.costs.causes import Cause
from engine.costs.predicted_memory import PREDICTED, Moment, closed_form_bytes, extra_bytes
from engine.costs.setup import Setup
from engine.costs.steps import StepSpan, step_span
from engine.events import Memory
from engine.facts import Category
from engine.trace import Trace

_BEFORE_BACKWARD: tuple[Category, ...] = ("parameter", "optimizer", "buffer")
"""Compared at the end of forward: gradients and buckets depend on what zero_grad does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CausedBytes:
    """What one named cause adds to the closed form; negative when it saves."""

    cause: Cause
    num_bytes: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """One category: what the closed form says, what was measured, and why they differ."""

    category: Category
    predicted_bytes: Fraction
    measured_bytes: int
    causes: tuple[CausedBytes, ...]

    @property
    def unexplained_bytes(self) -> Fraction:
        """Measured less predicted less all causes: 0 when everything is understood."""
        explained = sum((caused.num_bytes for caused in self.causes), start=Fraction(0))
        return self.measured_bytes - self.predicted_bytes - explained


def compare_memory(
    trace: Trace, setup: Setup, *, rank: int = 0, step: int = -1, moment: Moment = "steady"
) -> tuple[MemoryRow, ...]:
    """One row per category that has a closed form, at one moment of one step of one rank.

    step counts from 0, negative numbers from the last one.
    Raises: ValueError when the rank has no such step, or nothing was measured at that moment.
    """
    span = step_span(trace, rank=rank, step=step)
    memory = _measured(trace, span, moment)
    has_stepped = moment == "steady" or span.index > 0
    extras = extra_bytes(setup, rank=rank, moment=moment, has_stepped=has_stepped)
    return tuple(
        MemoryRow(
            category=category,
            predicted_bytes=closed_form_bytes(setup, category),
            measured_bytes=_bytes_of(memory, category),
            causes=tuple(
                CausedBytes(cause=extra.cause, num_bytes=extra.num_bytes)
                for extra in extras
                if extra.category == category and extra.num_bytes
            ),
        )
        for category in (PREDICTED if moment == "steady" else _BEFORE_BACKWARD)
    )


def _measured(trace: Trace, span: StepSpan, moment: Moment) -> Memory:
    """The last boundary of the step's forward, or of its optimizer."""
    phase = "forward" if moment == "forward" else "step"
    found = [
        event
        for event in trace.memory
        if event.rank == span.rank and event.phase == phase and span.has(event.at_ns)
    ]
    if not found:
        raise ValueError(f"moment must be one that was measured, and {moment} was not")
    return max(found, key=lambda event: event.at_ns)


def _bytes_of(memory: Memory, category: Category) -> int:
    match category:
        case "parameter":
            return memory.parameter_bytes
        case "gradient":
            return memory.gradient_bytes
        case "optimizer":
            return memory.optimizer_bytes
        case "activation":
            return memory.activation_bytes
        case "buffer":
            return memory.buffer_bytes
        case "communication":
            return memory.communication_bytes
        case "other":
            return memory.other_bytes
