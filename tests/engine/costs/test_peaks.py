"""Peaks: closed forms, and the highest moments of real ranks."""

from collections.abc import Callable

import pytest

from engine.costs.peaks import PeakBytes, Units, ddp_peak, fsdp1_peak, fsdp2_peak
from engine.costs.precision import FP32_ADAM
from engine.facts import PeakFacts
from tests.engine.costs.conftest import Train
from tests.engine.costs.programs import EQUAL_PROGRAMS

LAYER = 64 * 64 + 64
PSI = 8 * LAYER
EIGHT = Units(numels=(LAYER,) * 8, num_ranks=4, precision=FP32_ADAM)


def ddp(*, view: bool = False, zero: bool = False) -> PeakBytes:
    return ddp_peak(
        num_parameters=PSI,
        num_ranks=4,
        precision=FP32_ADAM,
        gradient_as_bucket_view=view,
        zero_redundancy=zero,
    )


PREDICTED = {
    "ddp": ddp(),
    "ddp-view": ddp(view=True),
    "zero1": ddp(view=True, zero=True),
    "shard-grad-op": fsdp1_peak(EIGHT, resharded=False),
    "full-shard": fsdp1_peak(EIGHT, resharded=True),
    "fsdp2-false": fsdp2_peak(EIGHT, resharded=False),
    "fsdp2-true": fsdp2_peak(EIGHT, resharded=True),
}


@pytest.mark.parametrize(
    ("name", "units_of_4_psi"),
    [
        ("ddp", 5),
        ("ddp-view", 4),
        ("zero1", 2.5),
        ("shard-grad-op", 2),
        ("full-shard", 1.4375),
        ("fsdp2-false", 2),
        ("fsdp2-true", 1.4375),
    ],
)
def test_peak_of_eight_equal_layers_on_four_ranks(name: str, units_of_4_psi: float) -> None:
    assert PREDICTED[name].total_bytes / (4 * PSI) == units_of_4_psi


def test_large_root_is_whole_all_the_time() -> None:
    with_root = Units(numels=(100,) * 2, root_numel=1000, num_ranks=4, precision=FP32_ADAM)
    assert fsdp1_peak(with_root, resharded=True).whole_parameter_bytes == 4 * 1200
    assert fsdp2_peak(with_root, resharded=True).whole_parameter_bytes == 4 * 1100


@pytest.mark.parametrize("name", PREDICTED)
async def test_highest_moment_of_a_rank_is_the_prediction_and_activations(
    train: Train, name: str
) -> None:
    trace = await train(EQUAL_PROGRAMS[name])
    peak = max(facts.peak_bytes for facts in trace.memory if facts.rank == 0)
    # 4 rows of 64 values: inputs, outputs and their gradients, at most 2 per layer; Adam works on
    # two temporary tensors at a time where its step() is the highest moment.
    activations = 2 * 9 * 4 * 64 * 4
    in_step = 2 * 64 * 64 * 4 if name in ("ddp", "ddp-view", "zero1") else 0
    excess = peak - PREDICTED[name].total_bytes
    assert 0 <= excess <= activations + in_step


async def test_peaks_fall_from_stage_to_stage(train: Train) -> None:
    peaks: list[PeakFacts] = []
    for name in ("ddp", "zero1", "shard-grad-op", "full-shard"):
        trace = await train(EQUAL_PROGRAMS[name])
        peaks.append(trace.peaks[0])
    totals = [peak.total_bytes for peak in peaks]
    assert totals == sorted(set(totals), reverse=True)


async def test_fsdp2_peaks_fall_when_it_reshards(train: Train) -> None:
    kept = (await train(EQUAL_PROGRAMS["fsdp2-false"])).peaks[0].total_bytes
    resharded = (await train(EQUAL_PROGRAMS["fsdp2-true"])).peaks[0].total_bytes
    assert resharded < kept


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("numels", lambda: Units(numels=(), num_ranks=1, precision=FP32_ADAM)),
        ("numels", lambda: Units(numels=(1, -1), num_ranks=1, precision=FP32_ADAM)),
        ("root_numel", lambda: Units(numels=(1,), root_numel=-1, num_ranks=1, precision=FP32_ADAM)),
        ("num_ranks", lambda: Units(numels=(1,), num_ranks=0, precision=FP32_ADAM)),
        (
            "num_parameters",
            lambda: ddp_peak(num_parameters=-1, num_ranks=1, precision=FP32_ADAM),
        ),
    ],
)
def test_bad_argument_is_named(argument: str, call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"^{argument} "):
        call()
