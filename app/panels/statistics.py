"""Batch-norm statistics as a figure: what each rank normalized with, beside the global batch.

Owns LayerPanel and the figure's geometry. May import contexts and the engine's trace.
Shape legend: [C] channels. Lengths are SVG user units.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

from app.panels.contexts import AxisTick, LayerPanel, StatisticPoint, StatisticRow
from engine.trace import ChannelStatistics, LayerStep, Trace, layer_steps

TOLERANCE = 1e-5
"""Relative to a value's own size or, for means near 0, to the batch's deviation. Ranks compute in
float32, whose rounding (1e-7 per operation) adds up over a batch."""
MAX_LAYERS = 8
MAX_ROWS = 8
MAX_DOTS = 16
"""Dots that a reader can still tell apart: with many ranks fewer channels are drawn."""
WIDTH = 360.0
LEFT = 46.0
RIGHT = 346.0
LANE = 16.0
ROW_GAP = 10.0
AXIS = 22.0
HUGE = 1e300
"""Beyond it, and for nan, there is no place in a figure."""
SMALLEST_STEP = 1e-300
MAX_TICKS = 5

StatisticKind = Literal["mean", "var"]
Values = dict[int, tuple[float, ...]]
"""rank -> [C]."""


def layer_panels(trace: Trace) -> tuple[LayerPanel, ...]:
    """Draw the mean and the variance of every batch-norm layer in its newest whole forward."""
    by_module: dict[str, list[LayerStep]] = {}
    for step in layer_steps(trace.statistics):
        by_module.setdefault(step.module, []).append(step)
    panels = []
    for steps in list(by_module.values())[:MAX_LAYERS]:
        step = _newest(steps, trace.world_size)
        for statistic in ("mean", "var"):
            panel = _panel(step, len(steps), "mean" if statistic == "mean" else "var")
            if panel is not None:
                panels.append(panel)
    return tuple(panels)


def _newest(steps: Sequence[LayerStep], world_size: int) -> LayerStep:
    """Take the last forward that all ranks reported: in a live run the very last is partial."""
    whole = [step for step in steps if len(step.used) == world_size]
    return (whole or steps)[-1]


def _panel(step: LayerStep, num_steps: int, statistic: StatisticKind) -> LayerPanel | None:
    batch, used = _batch(step), step.used
    if batch is None or len({len(s.mean) for s in [batch, *used.values()]}) != 1:
        return None
    values = {rank: _of(used[rank], statistic) for rank in sorted(used)}
    batch_values = _of(batch, statistic)
    slack = [TOLERANCE * scale for scale in _scales(batch, statistic)]
    num_rows = min(len(batch_values), MAX_ROWS, max(2, MAX_DOTS // len(values)))
    low, high = _range([*values.values(), batch_values], num_rows)
    return LayerPanel(
        module=step.module,
        step=step.index,
        num_steps=num_steps,
        statistic=statistic,
        is_synced=set(step.synced) == set(used),
        agree=all(
            abs(v[c] - batch_values[c]) <= slack[c] for v in values.values() for c in range(len(v))
        ),
        is_finite=all(math.isfinite(x) for v in [*values.values(), batch_values] for x in v),
        num_different=max(
            _num_different([v[c] for v in values.values()], slack[c])
            for c in range(len(batch_values))
        ),
        num_channels=len(batch_values),
        rows=_rows(values, batch_values, num_rows, lambda value: _x(value, low, high)),
        low=low,
        high=high,
        counts=tuple((rank, step.local[rank].count) for rank in sorted(step.local)),
        ticks=_ticks(low, high),
        width=WIDTH,
        height=num_rows * _row_height(len(values)) + AXIS,
    )


def _batch(step: LayerStep) -> ChannelStatistics | None:
    try:
        return step.batch
    except OverflowError:  # a rank's values are not bound to be sensible
        return None


def _of(statistics: ChannelStatistics, statistic: StatisticKind) -> tuple[float, ...]:
    return statistics.mean if statistic == "mean" else statistics.var


def _scales(batch: ChannelStatistics, statistic: StatisticKind) -> list[float]:
    if statistic == "var":
        return [abs(value) for value in batch.var]
    return [max(abs(m), max(v, 0.0) ** 0.5) for m, v in zip(batch.mean, batch.var, strict=True)]


def _num_different(values: Sequence[float], slack: float) -> int:
    """Count groups of values that lie within the slack of their neighbours."""
    ordered = sorted(values)
    gaps = [b - a for a, b in pairwise(ordered)]
    return 1 + sum(gap > 2 * slack for gap in gaps)


def _range(values: Sequence[tuple[float, ...]], num_rows: int) -> tuple[float, float]:
    drawn = [v for channels in values for v in channels[:num_rows] if abs(v) < HUGE] or [0.0]
    low, high = min(drawn), max(drawn)
    pad = (high - low) * 0.06 or max(abs(low) * 0.1, 0.1)
    return low - pad, high + pad


def _x(value: float, low: float, high: float) -> float | None:
    if not abs(value) < HUGE:
        return None
    return round(LEFT + (value - low) / (high - low) * (RIGHT - LEFT), 2)


def _row_height(num_ranks: int) -> float:
    return num_ranks * LANE + ROW_GAP


def _rows(
    values: Values, batch: tuple[float, ...], num_rows: int, place: Callable[[float], float | None]
) -> tuple[StatisticRow, ...]:
    height = _row_height(len(values))
    rows = []
    for channel in range(num_rows):
        top = channel * height
        points = tuple(
            StatisticPoint(
                rank=rank,
                value=channels[channel],
                x=place(channels[channel]),
                # One lane per rank: dots that coincide stand above each other, not upon.
                y=top + ROW_GAP / 2 + (lane + 0.5) * LANE,
            )
            for lane, (rank, channels) in enumerate(values.items())
        )
        drawn = [point.value for point in points]
        rows.append(
            StatisticRow(
                channel=channel,
                points=points,
                batch_value=batch[channel],
                batch_x=place(batch[channel]),
                spread=max(drawn) - min(drawn),
                top=top,
                bottom=top + height,
            )
        )
    return tuple(rows)


def _ticks(low: float, high: float) -> tuple[AxisTick, ...]:
    """Label round values: multiples of 1, 2 or 5 times a power of ten, about 5 of them."""
    least = (high - low) / MAX_TICKS
    if not SMALLEST_STEP < least < math.inf:  # below, powers of ten are no numbers any more
        return ()
    power = 10.0 ** math.floor(math.log10(least))
    step = next((f * power for f in (1, 2, 5) if f * power >= least), 10 * power)
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    places = ((_x(k * step, low, high), f"{k * step:.5g}") for k in numbers)
    return tuple(AxisTick(x=x, text=text) for x, text in places if x is not None)
