"""Six ways to get SyncBatchNorm's kernels wrong, each caught by a check of ours."""

import math

import pytest

from tests.engine.conftest import Runner
from tests.engine.fidelity.reading import PATIENT, rows, source

ONLY = ["even", "unequal 4-d", "no affine", "one empty rank", "mean 1e4 in float32"]
TOLERANCES = {"mean 1e4 in float32": 1e-2}
FLOAT64_TOLERANCE = 1e-12

Failures = dict[object, set[str]]


@pytest.fixture(scope="module")
async def failures(run: Runner) -> Failures:
    """By planted fault, what failed, as "case: difference"."""
    program = source("fidelity/faults.py", f"ONLY = {ONLY}", "syncbn_cases.py")
    ran = await run(program, ranks=3, limits=PATIENT)
    found: Failures = {}
    for rank in range(3):
        for row in rows(ran, rank):
            failed = found.setdefault(row["fault"], set())
            for name in ("output", "input_grad", "parameter_grad", "buffers"):
                value = row.get(name, 0.0)
                assert isinstance(value, float)
                tolerance = TOLERANCES.get(str(row["case"]), FLOAT64_TOLERANCE)
                if not value < tolerance or math.isnan(value):
                    failed.add(f"{row['case']}: {name}")
    return found


def test_nothing_fails_without_a_fault(failures: Failures) -> None:
    assert failures[None] == set()
    assert len(failures) == 7


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [
        ("no sync", {"even: output", "unequal 4-d: output", "one empty rank: buffers"}),
        ("unweighted counts", {"unequal 4-d: output", "unequal 4-d: buffers"}),
        ("biased running_var", {"even: buffers", "unequal 4-d: buffers"}),
        ("missing backward all_reduce", {"even: input_grad", "no affine: input_grad"}),
        ("local count", {"even: input_grad", "unequal 4-d: input_grad"}),
        ("E[x^2] - E[x]^2", {"mean 1e4 in float32: output", "mean 1e4 in float32: buffers"}),
    ],
)
def test_planted_fault_is_caught(failures: Failures, fault: str, caught_by: set[str]) -> None:
    assert caught_by <= failures[fault]


@pytest.mark.parametrize(
    ("fault", "not_by"),
    [
        ("unweighted counts", "even"),  # equal batches weigh the same
        ("biased running_var", "mean 1e4 in float32"),  # within float32's steps at 1e4
        ("E[x^2] - E[x]^2", "even"),  # float64 near mean 0 has digits to lose
    ],
)
def test_planted_fault_passes_where_it_makes_no_difference(
    failures: Failures, fault: str, not_by: str
) -> None:
    assert not [failed for failed in failures[fault] if failed.startswith(f"{not_by}:")]
