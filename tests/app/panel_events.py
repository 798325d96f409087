"""Synthetic events for the panel tests: what four ranks of a small batch-norm program report."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.panels.contexts import RunState
from engine.events import (
    Collective,
    Outcome,
    Output,
    RankEnd,
    Scope,
    Started,
    Statistic,
    StatisticName,
    Status,
    Stream,
)
from engine.trace import Trace, fold

LOCAL_MEANS = ((1.0, -1.0), (2.0, -3.0), (4.0, 0.5), (5.0, 1.5))
"""[W, C]: what each rank's own two samples average to."""
BATCH_MEAN = (3.0, -0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A run's record as the back end keeps it."""

    run_id: str = "r1"
    lesson_id: str = "syncbn"
    cell_id: str = "compare"
    world_size: int = 4
    device: str = "cpu"
    state: RunState = "ended"
    position: int | None = None
    elapsed_s: float = 0.4
    wall_limit_s: float = 20.0
    source: str = "print('hello')\n"
    is_stale: bool = False


def started(world_size: int = 4) -> Started:
    return Started(rank=-1, seq=0, at_ns=0, world_size=world_size, device="cpu", tier="namespaces")


def output(rank: int, text: str, stream: Stream = "stdout") -> Output:
    return Output(rank=rank, seq=0, at_ns=1_000_000, stream=stream, text=text)


def statistic(
    rank: int, name: StatisticName, scope: Scope, values: Sequence[float], module: str = "1"
) -> Statistic:
    return Statistic(
        rank=rank,
        seq=0,
        at_ns=2_000_000,
        module=module,
        name=name,
        scope=scope,
        values=tuple(values),
        phase="forward",
        line=12,
    )


def forward(rank: int, *, synced: bool) -> list[Statistic]:
    """One forward of layer "1" on one rank: 2 values per channel, and the synchronised values."""
    events = [
        statistic(rank, "mean", "local", LOCAL_MEANS[rank]),
        statistic(rank, "var", "local", (1.0, 1.0)),
        statistic(rank, "count", "local", (2.0,)),
    ]
    if synced:
        var = tuple(
            1.0 + sum((m[c] - BATCH_MEAN[c]) ** 2 for m in LOCAL_MEANS) / 4 for c in range(2)
        )
        events += [
            statistic(rank, "mean", "global", BATCH_MEAN),
            statistic(rank, "var", "global", var),
            statistic(rank, "count", "global", (8.0,)),
        ]
    return events


def gathered(
    rank: int, *, at_ns: int = 5_000_000, duration_ns: int | None = 40_000, seq: int = 0
) -> Collective:
    """The all_gather of SyncBatchNorm's forward with C = 6: 2C + 1 = 13 float32 values."""
    return Collective(
        rank=rank,
        seq=seq,
        at_ns=at_ns,
        op="all_gather",
        group="default",
        group_ranks=(0, 1, 2, 3),
        group_seq=seq,
        group_size=4,
        input_bytes=52,
        output_bytes=208,
        dtype="float32",
        duration_ns=duration_ns,
        phase="forward",
        module="1",
        line=17,
    )


def outcome(status: Status = "ok", ranks: Sequence[RankEnd] = ()) -> Outcome:
    return Outcome(
        rank=-1,
        seq=0,
        at_ns=400_000_000,
        status=status,
        ranks=tuple(ranks),
        diagnosis=(),
        elapsed_s=0.4,
        dropped_events=0,
    )


def batch_norm_trace(*, synced: bool) -> Trace:
    events = [event for rank in range(4) for event in forward(rank, synced=synced)]
    return fold([started(), *events])
