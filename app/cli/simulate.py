"""`academy simulate`: one rank of many, and what it would hold and send, as tables.

May import the engine's leaves, trace, costs, rich and app.cli.run. The run itself is that of
`academy run`, with another number of ranks than of processes.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO, get_args

from rich.console import Console
from rich.table import Table

from app.cli.report import HumanReport
from app.cli.run import Request, carry_out
from engine.costs.steps import step_spans
from engine.events import Collective, Event, Outcome
from engine.facts import Category, MemoryFacts
from engine.trace import Trace

_MIB = 1024 * 1024
_BITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTraffic:
    """All calls of one op in one step."""

    op: str
    num_calls: int
    num_elements: int
    """Of whole tensors: what an all_gather ends with, what a reduce_scatter starts from."""
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSummary:
    """What one rank holds between two steps and at its highest moment, and sends per step."""

    num_ranks: int
    steady: MemoryFacts | None
    """After the last optimizer step and before zero_grad; None if nothing was held."""
    peak: MemoryFacts | None
    traffic: tuple[OpTraffic, ...]
    is_per_step: bool
    """False: the program has no training step, and traffic is that of all of it."""


def carry_out_simulation(request: Request) -> int:
    """Simulate and print; the exit code."""
    return carry_out(request, SimulationReport(sys.stdout))


class SimulationReport(HumanReport):
    """Prints as every run does, and the figures of the rank before the outcome."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._trace = Trace()

    def show(self, event: Event) -> None:
        self._trace.add(event)
        super().show(event)
        if isinstance(event, Outcome) and event.status == "ok":
            print_summary(summarize(self._trace), self._out)


def summarize(trace: Trace) -> RankSummary:
    """The figures of a simulated rank."""
    spans = step_spans(trace, rank=0)
    steady = [m for m in trace.memory if m.phase == "step"] or trace.memory
    calls = [c for c in trace.collectives if not spans or spans[-1].has(c.at_ns)]
    return RankSummary(
        num_ranks=(trace.started.simulated_ranks or 1) if trace.started else 1,
        steady=steady[-1] if steady else None,
        peak=trace.peaks.get(0),
        traffic=tuple(_traffic(calls)),
        is_per_step=bool(spans),
    )


def _traffic(calls: Iterable[Collective]) -> Iterable[OpTraffic]:
    by_op: dict[str, list[Collective]] = {}
    for call in calls:
        by_op.setdefault(call.op, []).append(call)
    for op, of_op in by_op.items():
        yield OpTraffic(
            op=op,
            num_calls=len(of_op),
            num_elements=sum(_whole_bytes(c) // _element_bytes(c.dtype) for c in of_op),
            num_bytes=sum(map(_whole_bytes, of_op)),
        )


def _whole_bytes(call: Collective) -> int:
    return max(call.input_bytes, call.output_bytes)


def _element_bytes(dtype: str | None) -> int:
    """Bytes of one element, from the dtype's name: float32, bfloat16, float8_e4m3fn, bool."""
    bits = _BITS.search(dtype or "")
    return max(int(bits[0]) // 8, 1) if bits else 1


def print_summary(summary: RankSummary, out: TextIO) -> None:
    """Print memory and traffic, labelled as simulated."""
    console = Console(file=out, markup=False, highlight=False)
    ranks = f"{summary.num_ranks} simulated rank{'s' if summary.num_ranks > 1 else ''}"
    console.print(f"Memory of one of {ranks}, in bytes:")
    memory = Table("simulated")
    memory.add_column("after the step", justify="right")
    memory.add_column("at the peak", justify="right")
    for category in get_args(Category):
        memory.add_row(category, *(_bytes(f, category) for f in (summary.steady, summary.peak)))
    memory.add_section()
    memory.add_row("total", _bytes(summary.steady, "total"), _bytes(summary.peak, "total"))
    console.print(memory)
    what = "per step" if summary.is_per_step else "in all"
    console.print(f"Collectives of one of {ranks}, {what}:")
    traffic = Table("simulated")
    for heading in ("calls", "elements", "bytes"):
        traffic.add_column(heading, justify="right")
    for row in summary.traffic:
        traffic.add_row(row.op, f"{row.num_calls}", f"{row.num_elements:,}", f"{row.num_bytes:,}")
    console.print(traffic)


def _bytes(facts: MemoryFacts | None, name: str) -> str:
    if facts is None:
        return "-"
    num_bytes: int = getattr(facts, f"{name}_bytes")
    return f"{num_bytes:,} ({num_bytes / _MIB:,.1f} MiB)"
