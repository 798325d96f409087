"""The traffic of one step of a real run beside its prediction, the difference explained by name.

May import engine.{facts,events,trace} and engine.costs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.costs.causes import Cause
from engine.costs.flows import Flow
from engine.costs.predicted_traffic import closed_form, extra_flows
from engine.costs.setup import Setup
from engine.costs.steps import StepSpan, step_span
from engine.events import Collective
from engine.facts import Phase
from engine.trace import Trace

_DTYPE_BYTES = {
    "float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
}  # fmt: skip
"""Of the dtypes that are not one byte wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much is carried, counted in whole tensors as in `flows`."""

    num_elements: int = 0
    num_bytes: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            num_elements=self.num_elements + other.num_elements,
            num_bytes=self.num_bytes + other.num_bytes,
        )

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(
            num_elements=self.num_elements - other.num_elements,
            num_bytes=self.num_bytes - other.num_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowKey:
    """One kind of call in one phase of a step."""

    op: str
    phase: Phase | None
    group_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CausedTraffic:
    """What one named cause adds to the closed form; negative when it saves."""

    cause: Cause
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRow:
    """One kind of call: what the closed form says, what was measured, and why they differ."""

    key: FlowKey
    predicted: Amount
    measured: Amount
    causes: tuple[CausedTraffic, ...]

    @property
    def unexplained(self) -> Amount:
        """Measured less predicted less all causes: nothing when everything is understood."""
        return self.measured - self.predicted - _total(caused.amount for caused in self.causes)


def compare_traffic(
    trace: Trace, setup: Setup, *, rank: int = 0, step: int = -1
) -> tuple[TrafficRow, ...]:
    """One row per kind of call that was predicted or measured in one step of one rank.

    step counts from 0, negative numbers from the last one.
    Raises: ValueError when the rank has no such step.
    """
    span = step_span(trace, rank=rank, step=step)
    predicted = [(_key(flow), _amount(flow)) for flow in closed_form(setup)]
    caused = [
        (_key(extra.flow), CausedTraffic(cause=extra.cause, amount=_amount(extra.flow)))
        for extra in extra_flows(setup, step=span.index)
    ]
    measured = list(_measured(trace.collectives, span))
    keys = dict.fromkeys(key for rows in (predicted, caused, measured) for key, _ in rows)
    return tuple(
        TrafficRow(
            key=key,
            predicted=_total(amount for k, amount in predicted if k == key),
            measured=_total(amount for k, amount in measured if k == key),
            causes=_merged(caused_by for k, caused_by in caused if k == key),
        )
        for key in keys
    )


def _measured(
    collectives: Iterable[Collective], span: StepSpan
) -> Iterable[tuple[FlowKey, Amount]]:
    for event in collectives:
        if event.rank == span.rank and event.phase is not None and span.has(event.at_ns):
            num_bytes = max(event.input_bytes, event.output_bytes)
            width = _DTYPE_BYTES.get(event.dtype or "", 1)
            key = FlowKey(op=event.op, phase=event.phase, group_size=event.group_size)
            yield key, Amount(num_elements=num_bytes // width, num_bytes=num_bytes)


def _key(flow: Flow) -> FlowKey:
    return FlowKey(op=flow.op, phase=flow.phase, group_size=flow.group_size)


def _amount(flow: Flow) -> Amount:
    return Amount(num_elements=flow.num_elements, num_bytes=flow.num_bytes)


def _total(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, start=Amount())


def _merged(all_caused: Iterable[CausedTraffic]) -> tuple[CausedTraffic, ...]:
    """One entry per cause, without those that change nothing."""
    totals: dict[Cause, Amount] = {}
    for caused in all_caused:
        totals[caused.cause] = totals.get(caused.cause, Amount()) + caused.amount
    return tuple(
        CausedTraffic(cause=cause, amount=amount)
        for cause, amount in totals.items()
        if amount != Amount()
    )
