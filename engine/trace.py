"""Folds a run's events into one Trace: what is held, sent and computed, per rank.

May import events and program. Shape legend: [C] channels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.events import (
    Allocation,
    Collective,
    Event,
    Memory,
    Note,
    Observation,
    Outcome,
    Output,
    Peak,
    Started,
    Statistic,
    Verdict,
)


@dataclass(slots=True)
class Trace:
    """Everything known of one run so far; grows by `add`."""

    started: Started | None = None
    outputs: list[Output] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    statistics: list[Statistic] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    peaks: dict[int, Peak] = field(default_factory=dict)
    """The highest moment of each rank so far."""
    allocations: list[Allocation] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    verdict: Verdict | None = None
    outcome: Outcome | None = None

    def add(self, event: Event) -> None:
        """Fold one more event in."""
        match event:
            case Started():
                self.started = event
            case Output():
                self.outputs.append(event)
            case Collective():
                self.collectives.append(event)
            case Statistic():
                self.statistics.append(event)
            case Memory():
                self.memory.append(event)
            case Peak():
                self.peaks[event.rank] = event
            case Allocation():
                self.allocations.append(event)
            case Observation():
                self.observations.append(event)
            case Note():
                self.notes.append(event)
            case Verdict():
                self.verdict = event
            case Outcome():
                self.outcome = event

    @property
    def world_size(self) -> int:
        """Number of ranks, 0 before the run started."""
        return self.started.world_size if self.started else 0


def fold(events: Iterable[Event]) -> Trace:
    """Build the Trace of a run from all of its events."""
    trace = Trace()
    for event in events:
        trace.add(event)
    return trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelStatistics:
    """Mean [C], biased variance [C] and number of values per channel."""

    mean: tuple[float, ...]
    var: tuple[float, ...]
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStep:
    """One forward of one batch-norm layer, over the ranks that reported it.

    local: what each rank's own input has. used: what each rank normalized with, which is `local`
    for a plain batch norm and the synchronised values for SyncBatchNorm.
    """

    module: str
    index: int
    """Number of this forward of the layer, from 0."""
    local: dict[int, ChannelStatistics]
    synced: dict[int, ChannelStatistics]

    @property
    def used(self) -> dict[int, ChannelStatistics]:
        return {**self.local, **self.synced}

    @property
    def batch(self) -> ChannelStatistics | None:
        """Statistics of the global batch, combined from what all ranks measured."""
        return combine(list(self.local.values()))


def combine(parts: Sequence[ChannelStatistics]) -> ChannelStatistics | None:
    """Statistics of the union of the parts, from centred moments; None if it is empty.

    Source: Chan, Golub, LeVeque 1979, pairwise update of mean and sum of squared deviations.
    """
    filled = [p for p in parts if p.count > 0]
    if not filled or len({len(p.mean) for p in filled}) != 1:
        return None
    total = sum(p.count for p in filled)
    mean = tuple(
        sum(p.mean[c] * p.count for p in filled) / total for c in range(len(filled[0].mean))
    )
    var = tuple(
        sum((p.var[c] + (p.mean[c] - mean[c]) ** 2) * p.count for p in filled) / total
        for c in range(len(mean))
    )
    return ChannelStatistics(mean=mean, var=var, count=total)


def layer_steps(statistics: Iterable[Statistic]) -> list[LayerStep]:
    """Group statistic events by layer and by forward, in order of first appearance.

    The k-th mean of a layer on one rank belongs to the k-th mean on every other rank.
    """
    seen: dict[tuple[int, str, str, str], int] = {}
    values: dict[tuple[str, int], dict[tuple[int, str, str], tuple[float, ...]]] = {}
    for event in statistics:
        if event.name not in ("mean", "var", "count"):
            continue
        counter = (event.rank, event.module, event.scope, event.name)
        index = seen.get(counter, 0)
        seen[counter] = index + 1
        step = values.setdefault((event.module, index), {})
        step[event.rank, event.scope, event.name] = event.values
    return [_step(module, index, found) for (module, index), found in values.items()]


def _step(
    module: str, index: int, found: dict[tuple[int, str, str], tuple[float, ...]]
) -> LayerStep:
    scopes: dict[str, dict[int, ChannelStatistics]] = {"local": {}, "global": {}}
    for rank in sorted({rank for rank, _, _ in found}):
        local_count = (found.get((rank, "local", "count")) or (0.0,))[0]
        for scope, target in scopes.items():
            mean, var = found.get((rank, scope, "mean")), found.get((rank, scope, "var"))
            if mean and var and len(mean) == len(var):
                count = (found.get((rank, scope, "count")) or (local_count,))[0]
                target[rank] = ChannelStatistics(mean=mean, var=var, count=count)
    return LayerStep(module=module, index=index, local=scopes["local"], synced=scopes["global"])
