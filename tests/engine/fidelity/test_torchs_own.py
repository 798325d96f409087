"""PyTorch's own SyncBatchNorm tests pass on our ranks, and fail under kernels with a fault."""

import pytest

from tests.engine.conftest import Runner
from tests.engine.fidelity.reading import PATIENT, rows, source

BASE = "test_DistributedDataParallel_SyncBatchNorm"
TESTS = {
    BASE,
    f"{BASE}_2D_Input",
    f"{BASE}_Channels_Last",
    f"{BASE}_Diff_Input_Sizes_Running_Value",
    f"{BASE}_Diff_Input_Sizes_gradient",
    f"{BASE}_No_Affine",
    f"{BASE}_Single_Input_Per_Process",
    f"{BASE}_half",
    "test_ddp_sync_bn_training_vs_eval",
    "test_ddp_uneven_inputs_stop_iteration_sync_bn",
    "test_sync_bn_logged",
}
PROGRAM = "fidelity/torchs_own_tests.py"


@pytest.mark.parametrize("ranks", [2, 4])
async def test_torchs_own_tests_of_syncbn_pass(run: Runner, ranks: int) -> None:
    ran = await run(source(PROGRAM), ranks=ranks, limits=PATIENT)
    for rank in range(ranks):
        results = {row["test"]: row["failed"] for row in rows(ran, rank)}
        assert results == dict.fromkeys(TESTS)


async def test_torchs_own_tests_fail_under_faulty_kernels(run: Runner) -> None:
    names = [f"{BASE}_Diff_Input_Sizes_gradient", f"{BASE}_Diff_Input_Sizes_Running_Value"]
    ran = await run(
        source("fidelity/faults.py", f"TESTS = {names}", PROGRAM), ranks=2, limits=PATIENT
    )
    gradient, running = names
    failed: dict[object, set[object]] = {row["fault"]: set() for row in rows(ran)}
    for row in rows(ran):
        if row["failed"]:
            failed[row["fault"]].add(row["test"])
    assert failed == {
        None: set(),
        "no sync": {gradient, running},
        "unweighted counts": {gradient, running},
        "biased running_var": {running},
        "missing backward all_reduce": {gradient},
        "local count": {gradient},
        "E[x^2] - E[x]^2": set(),  # none of torch's tests has a large mean; one of ours has
    }
