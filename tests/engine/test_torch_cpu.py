"""Stock SyncBatchNorm, DDP, FSDP1 and "nccl" on real CPU ranks with engine.torch_cpu installed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.reports import NoteReport
from tests.engine.torch_programs.client import Rank, Ranks

Case = dict[str, object]
Seen = dict[str, object]

FLOAT64_CASES = (
    "even",
    *(f"unequal {dims}-d" for dims in (2, 3, 4, 5)),
    "one sample per rank",
    "one empty rank",
    "only one rank has data",
    "no affine",
    "weight without bias",
    "no running statistics",
    "momentum None",
    "eps and momentum",
    "channels_last",
    "channels_last_3d",
    "non-contiguous",
)
HALF_CASES = ("bfloat16", "bfloat16, one empty rank", "float16", "float16, one empty rank")
DIFFERENCES = ("output", "input_grad", "parameter_grad", "buffers")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    ranks = Ranks(tmp_path_factory.mktemp("ranks"))
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def syncbn(ranks: Ranks) -> list[dict[str, Case]]:
    """Per rank, what each case of syncbn_cases.py printed."""
    ended = ranks.run("syncbn_cases.py", 3)
    assert [rank.exit for rank in ended] == [0, 0, 0], ended[0].output
    cases = [[json.loads(line) for line in rank.output.splitlines()] for rank in ended]
    return [{case.pop("case"): case for case in of_rank} for of_rank in cases]


@pytest.fixture(scope="module")
def adapted(ranks: Ranks) -> list[Rank]:
    ended = ranks.run("adaptations.py", 2)
    assert [rank.exit for rank in ended] == [0, 0], ended[0].output
    return ended


@pytest.fixture(scope="module")
def seen(adapted: list[Rank]) -> Seen:
    seen: Seen = json.loads(adapted[1].output)
    return seen


def worst(syncbn: list[dict[str, Case]], case: str, difference: str) -> float:
    values = [of_rank[case][difference] for of_rank in syncbn]
    return max(value for value in values if isinstance(value, float))


@pytest.mark.parametrize("case", FLOAT64_CASES)
def test_syncbn_equals_batch_norm_over_the_global_batch(
    syncbn: list[dict[str, Case]], case: str
) -> None:
    for difference in DIFFERENCES:
        assert worst(syncbn, case, difference) < 1e-12, difference
    # Stock makes an input that is neither contiguous nor channels_last contiguous.
    assert all(of_rank[case]["keeps_layout"] == (case != "non-contiguous") for of_rank in syncbn)


@pytest.mark.parametrize("case", HALF_CASES)
def test_syncbn_with_half_input_keeps_float32_statistics(
    syncbn: list[dict[str, Case]], case: str
) -> None:
    dtype = f"torch.{case.partition(',')[0]}"
    assert all(of_rank[case]["dtypes"] == [dtype, dtype] for of_rank in syncbn)
    assert worst(syncbn, case, "buffers") < 1e-6
    assert worst(syncbn, case, "parameter_grad") < 1e-4
    assert worst(syncbn, case, "output") < 0.02  # half of bfloat16's step at 4
    assert worst(syncbn, case, "input_grad") < 0.02


def test_variance_is_right_at_mean_10000_in_float32(syncbn: list[dict[str, Case]]) -> None:
    # Of values near 1e4, float32 keeps steps of 1e-3; E[x^2] - E[x]^2 would be wrong by about 10.
    assert worst(syncbn, "mean 1e4 in float32", "buffers") < 1e-2
    assert worst(syncbn, "mean 1e4 in float32", "output") < 1e-2


def test_running_statistics_stay_when_every_rank_is_empty(syncbn: list[dict[str, Case]]) -> None:
    for of_rank in syncbn:
        empty = of_rank["every rank empty"]
        assert (empty["running"], empty["grad"]) == ([0.0] * 4 + [1.0] * 4, None)


def test_syncbn_refuses_double_backward_as_stock_does(seen: Seen) -> None:
    assert "batch_norm_backward_elemt is not implemented" in str(seen["double backward"])


def test_syncbn_stays_the_stock_class(seen: Seen) -> None:
    assert seen["is SyncBatchNorm"] is True


def test_nccl_becomes_gloo_however_it_is_named(seen: Seen) -> None:
    assert (seen["backend"], seen["group"]) == ("gloo", "gloo")
    assert seen["same init"] is True


def test_warning_of_fsdp_points_at_the_program(seen: Seen) -> None:
    assert seen["warned in"] == ["program.py"]


def test_fsdp_gives_whole_state_on_rank_0_only(adapted: list[Rank]) -> None:
    num_tensors = [json.loads(ended.output)["whole state"] for ended in adapted]
    assert num_tensors == [9, 0]  # of two Linear and one BatchNorm


def test_signatures_stay(seen: Seen) -> None:
    assert seen["parameters"] == {
        "DDP": ["module", "device_ids", "output_device"],
        "FSDP": ["module", "process_group", "sharding_strategy"],
        "init": ["backend", "init_method", "timeout"],
    }


@pytest.mark.parametrize(
    ("use", "error"),
    [
        ("before init", "RuntimeError: FSDP needs a non-CPU accelerator device"),
        ("two ids", "ValueError: device_ids can only be None or contain a single element"),
        ("device by name", "ValueError: DistributedDataParallel device_ids and output_device"),
        ("wrong argument", "TypeError: FullyShardedDataParallel.__init__() got an unexpected"),
        ("cuda", "AssertionError: Torch not compiled with CUDA enabled"),
        ("set_device", "AttributeError"),
    ],
)
def test_wrong_use_still_raises_the_stock_error(seen: Seen, use: str, error: str) -> None:
    assert str(seen[use]).startswith(error)


def test_destroyed_group_is_never_freed(seen: Seen) -> None:
    assert seen["group is kept"] is True


def test_each_adaptation_is_noted_once_per_rank(adapted: list[Rank]) -> None:
    for rank, ended in enumerate(adapted):
        notes = {n.code: n for n in ended.reports if isinstance(n, NoteReport)}
        assert len(notes) == sum(isinstance(n, NoteReport) for n in ended.reports)
        assert {code: note.args for code, note in notes.items()} == {
            "nccl-to-gloo": {"backend": "nccl"},
            "device-ids-dropped": {"device_ids": f"[{rank}]"},
            "ddp-syncbn-check-lifted": {},
            "syncbn-on-cpu": {},
            "fsdp-device-id": {},
            "fsdp-sync-check-lifted": {},
            **({"fsdp-offload-on-cpu": {}} if rank == 0 else {}),  # only it has what is saved
        }
        source = (Path(__file__).parent / "torch_programs/adaptations.py").read_text().splitlines()
        assert source[(notes["nccl-to-gloo"].line or 0) - 1] == 'init_process_group("nccl")'


def test_device_neutral_program_gets_no_note(ranks: Ranks) -> None:
    program = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group()
model = DDP(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))
model(torch.randn(3, 2)).sum().backward()
"""
    ended = ranks.run(program, 2)
    assert [rank.exit for rank in ended] == [0, 0]
    assert not [r for rank in ended for r in rank.reports if isinstance(r, NoteReport)]


def test_parent_that_registered_the_kernels_has_one_thread(ranks: Ranks) -> None:
    assert ranks.num_parent_threads == 1
