"""Rules for silent mistakes on made-up traces: forged, incomplete, and only where they apply."""

import re
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from engine.diagnosis import diagnose
from engine.diagnosis.places import Places
from engine.events import Observation, Outcome, RankEnd, Started, Status
from engine.facts import Arg, Args
from engine.program import Program
from engine.trace import Trace, fold
from engine.tracers.observations import names
from engine.tracers.observations.names import ObservationName

PROGRAM = Program(source="x = 1\n" * 30, world_size=2)
ARGUMENTS = re.findall(r"[a-z_]+", Path(names.__file__).read_text())
"""Every word of the file that documents the arguments."""
ODD: tuple[Arg, ...] = (
    None,
    0,
    7,
    -1,
    2.5,
    float("inf"),
    "",
    "wrapper 0",
    "wrapper x",
    "0,1",
    "9,,a",
)


def outcome(status: Status = "ok") -> Outcome:
    ends = tuple(RankEnd(rank=rank, exit=0, cpu_s=0.1, peak_bytes=1) for rank in range(2))
    return Outcome(
        rank=-1,
        seq=0,
        at_ns=9,
        status=status,
        ranks=ends,
        diagnosis=(),
        elapsed_s=1,
        dropped_events=0,
    )


def observation(rank: int, name: str, args: Args, line: int | None = 3) -> Observation:
    return Observation(rank=rank, seq=0, at_ns=1, name=name, args=args, line=line)


def trace_of(*observations: Observation) -> Trace:
    started = Started(rank=-1, seq=0, at_ns=0, world_size=2, device="cpu", tier="namespaces")
    return fold([started, *observations])


def codes(*observations: Observation, status: Status = "ok") -> list[str]:
    return [d.code for d in diagnose(PROGRAM, outcome(status), trace_of(*observations))]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_forged_observations_break_no_rule(value: Arg) -> None:
    forged = [
        observation(rank, name, dict.fromkeys(ARGUMENTS, value), line)
        for name, rank, line in product(get_args(ObservationName), (0, 1, 5), (None, 2))
    ]
    for found in diagnose(PROGRAM, outcome(), trace_of(*forged)):
        assert found.message


def test_observations_without_arguments_break_no_rule() -> None:
    bare = [observation(r, n, {}, None) for n, r in product(get_args(ObservationName), (0, 1))]
    for found in diagnose(PROGRAM, outcome(), trace_of(*bare)):
        assert found.message


def step(rank: int, total: float, slope: float = 1.0, kind: str = "wrapper 0") -> Observation:
    return observation(
        rank,
        "step",
        {
            "optimizer": 0,
            "step": 1,
            "kind": kind,
            "ranks": "0,1",
            "numel": 4,
            "total": total,
            "square": 4.0,
            "gradient_total": slope,
            "gradient_square": slope * slope,
            "rate": 0.1,
            "num_sharded": 0,
            "zero": 0,
        },
    )


def end(rank: int, total: float, kind: str = "wrapper 0") -> Observation:
    args: Args = {
        "optimizer": 0,
        "steps": 1,
        "kind": kind,
        "numel": 4,
        "total": total,
        "square": 4.0,
    }
    return observation(rank, "end", args)


def test_replicas_that_end_equal_are_right_whatever_was_seen() -> None:
    unsynced = observation(0, "stepped-unsynced", {"optimizer": 0, "how": "no_sync"})
    assert codes(step(0, 1.0, 0.5), step(1, 1.0, 0.9), end(0, 2.0), end(1, 2.0), unsynced) == []


def test_rounding_is_no_difference() -> None:
    assert codes(step(0, 1.0), step(1, 1.0), end(0, 2.0), end(1, 2.0 + 1e-7)) == []


def test_replicas_that_differ_get_the_most_specific_cause() -> None:
    apart = (step(0, 1.0, 0.5), step(1, 1.0, 0.9), end(0, 2.0), end(1, 2.5))
    assert codes(*apart) == ["gradients-differ"]
    unsynced = observation(0, "stepped-unsynced", {"optimizer": 0, "how": "no_sync"})
    assert codes(*apart, unsynced) == ["stepped-under-no-sync"]
    other = observation(0, "stepped-unsynced", {"optimizer": 3, "how": "no_sync"})
    assert codes(*apart, other) == ["gradients-differ"]


def test_models_of_their_own_are_no_replicas() -> None:
    alone = (step(0, 1.0, 0.5, "plain"), step(1, 1.0, 0.9, "plain"))
    assert codes(*alone, end(0, 2.0, "plain"), end(1, 2.5, "plain")) == []


def test_values_that_are_no_numbers_are_not_compared() -> None:
    nan: Args = {
        "optimizer": 0,
        "steps": 1,
        "kind": "wrapper 0",
        "numel": 4,
        "total": None,
        "square": None,
    }
    assert codes(step(0, 1.0), step(1, 1.0), end(0, 2.0), observation(1, "end", nan)) == []


def test_runs_that_failed_are_not_searched_for_silent_mistakes() -> None:
    apart = (step(0, 1.0), step(1, 1.0), end(0, 2.0), end(1, 2.5))
    assert codes(*apart) == ["replicas-differ"]
    assert codes(*apart, status="cancelled") == []


def test_initial_values_are_compared_within_their_group_only() -> None:
    def unit(rank: int, total: float, group: str) -> Observation:
        args: Args = {"unit": 0, "ranks": group, "numel": 4, "total": total, "square": 4.0}
        return observation(rank, "initial-shards", {**args, "by": "fully_shard"})

    assert codes(unit(0, 1.0, "0,1"), unit(1, 2.0, "0,1")) == ["unequal-before-shard"]
    assert codes(unit(0, 1.0, "0,1"), unit(1, 1.0, "0,1")) == []
    assert codes(unit(0, 1.0, "0"), unit(1, 2.0, "1")) == []
    assert codes(unit(0, 1.0, "0,1")) == []


def test_at_most_four_mistakes_are_told() -> None:
    many = [
        o
        for number, rank in product(range(6), (0, 1))
        for o in (
            observation(rank, "step", {**step(rank, 1.0).args, "optimizer": number}, number + 1),
            observation(rank, "end", {**end(rank, 2.0 + rank).args, "optimizer": number}),
        )
    ]
    assert codes(*many) == ["replicas-differ"] * 4


def test_program_whose_parsing_would_hold_the_server_up_is_told_without_its_places() -> None:
    loop = "for step in range(3):\n    print(step)\n"
    assert Places(loop).around(2)
    long = "x = f'" + "{x}" * 20_000 + "'\n"
    assert Places(loop + long).around(2) == []
