"""Collectives as a table by call site and as compact JSON for the canvas.

Owns TimelinePanel. May import contexts and the engine's trace.

The JSON of `trace_json`, read by static/js/timeline.js, holds names once and calls as arrays:
`{"ranks": 4, "ops": ["all_gather"], "modules": ["1"], "end": null, "calls": [[rank, start,
duration, op, group_size, input_bytes, output_bytes, phase, module, line], ...]}`. Times are
microseconds since the run's start; -1 stands for a duration that never ended and for a module or
line that is not known; op and module are indices, phase is one into PHASES, whose first is none.
"""

import json
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from app.panels.contexts import CollectiveRow, TimelinePanel
from engine.events import Collective
from engine.facts import Phase
from engine.trace import Trace

MAX_CALLS = 5000
MAX_ROWS = 100
PHASES: tuple[Phase | None, ...] = (None, "forward", "backward", "step")
DTYPE_BYTES = (
    ("float64", 8),
    ("float32", 4),
    ("float16", 2),
    ("bfloat16", 2),
    ("int64", 8),
    ("int32", 4),
    ("int16", 2),
    ("int8", 1),
    ("uint8", 1),
    ("bool", 1),
    ("complex64", 8),
    ("complex128", 16),
)


class _Site(NamedTuple):
    """What makes calls the same line of the table."""

    op: str
    phase: Phase | None
    module: str | None
    line: int | None
    group_size: int
    input_bytes: int
    output_bytes: int
    dtype: str | None


def timeline_panel(trace: Trace, world_size: int) -> TimelinePanel:
    """Group the run's collectives by call site, and sum what each rank put in."""
    sites: dict[_Site, list[Collective]] = {}
    total = [0] * world_size
    for call in trace.collectives:
        sites.setdefault(_site(call), []).append(call)
        if call.rank < world_size:
            total[call.rank] += call.input_bytes
    rows = [_row(site, calls) for site, calls in list(sites.items())[:MAX_ROWS]]
    return TimelinePanel(
        rows=tuple(rows),
        num_calls=len(trace.collectives),
        total_input_bytes_per_rank=tuple(total),
        json=trace_json(trace, 0),
    )


def trace_json(trace: Trace, collectives_from: int) -> str:
    """Encode the calls from `trace.collectives[collectives_from]` on, the newest 5,000 at most."""
    calls = trace.collectives[max(collectives_from, len(trace.collectives) - MAX_CALLS) :]
    ops = sorted({call.op for call in calls})
    modules = sorted({call.module for call in calls if call.module is not None})
    op_index = {op: index for index, op in enumerate(ops)}
    module_index = {module: index for index, module in enumerate(modules)}
    encoded = {
        "ranks": trace.world_size,
        "ops": ops,
        "modules": modules,
        "end": trace.outcome.at_ns // 1000 if trace.outcome else None,
        "calls": [
            [
                call.rank,
                call.at_ns // 1000,
                -1 if call.duration_ns is None else call.duration_ns // 1000,
                op_index[call.op],
                call.group_size,
                call.input_bytes,
                call.output_bytes,
                PHASES.index(call.phase),
                -1 if call.module is None else module_index[call.module],
                -1 if call.line is None else call.line,
            ]
            for call in calls
        ],
    }
    return json.dumps(encoded, separators=(",", ":"))


def _site(call: Collective) -> _Site:
    return _Site(
        op=call.op,
        phase=call.phase,
        module=call.module,
        line=call.line,
        group_size=call.group_size,
        input_bytes=call.input_bytes,
        output_bytes=call.output_bytes,
        dtype=call.dtype,
    )


def _row(site: _Site, calls: Sequence[Collective]) -> CollectiveRow:
    per_rank = Counter(call.rank for call in calls)
    durations_us = [c.duration_ns / 1000 for c in calls if c.duration_ns is not None]
    itemsize = dict(DTYPE_BYTES).get(site.dtype or "")
    return CollectiveRow(
        op=site.op,
        phase=site.phase,
        module=site.module,
        line=site.line,
        num_calls=max(per_rank.values()),
        ranks=tuple(sorted(per_rank)),
        group_size=site.group_size,
        input_bytes=site.input_bytes,
        output_bytes=site.output_bytes,
        dtype=site.dtype,
        num_values=site.input_bytes // itemsize if itemsize else None,
        median_us=median(durations_us) if durations_us else None,
        num_unfinished=len(calls) - len(durations_us),
    )
