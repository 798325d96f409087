"""Mistakes that only ranks on GPUs can make, told by what torch says of them.

The failures are made by hand, with torch's own words: no rank here has a GPU.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.devices import RunsOn
from engine.diagnosis import diagnose
from engine.events import Failure, Frame, Outcome, RankEnd, Started, Status
from engine.messages import DIAGNOSES, render
from engine.program import Limits, Program
from engine.trace import fold

PROJECT = Path(__file__).parents[2]
SOURCE = 'import torch\nmodel = Net()\nout = model(torch.zeros(2, 3).to("cuda"))\n'


def found(message: str, *, device: RunsOn = "cuda", status: Status = "error") -> list[str]:
    """Codes that a run's diagnosis has when rank 1 raised this on line 3."""
    failure = Failure(
        type="RuntimeError",
        message=message,
        line=3,
        column=0,
        end_line=3,
        end_column=5,
        frames=(Frame(line=3, function="<module>"),),
    )
    outcome = Outcome(
        rank=-1,
        seq=1,
        at_ns=1,
        status=status,
        ranks=(
            RankEnd(rank=0, exit=None, cpu_s=0.1, peak_bytes=1),
            RankEnd(rank=1, exit=1, cpu_s=0.1, peak_bytes=1, failure=failure),
        ),
        diagnosis=(),
        elapsed_s=0.1,
        dropped_events=0,
        first_failed_rank=1,
    )
    started = Started(rank=-1, seq=0, at_ns=0, world_size=2, device=device, tier="walled")
    trace = fold((started, outcome))
    diagnosis = diagnose(Program(source=SOURCE, world_size=2), outcome, trace)
    assert all(item.message == render(DIAGNOSES[item.code], item.args) for item in diagnosis)
    assert all((item.line, item.rank) == (3, 1) for item in diagnosis)
    return [item.code for item in diagnosis]


@pytest.mark.parametrize(
    "message",
    [
        "No backend type associated with device type cpu",
        "SyncBatchNorm expected input tensor to be on GPU or XPU or privateuseone",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
        "and cpu! (when checking argument for argument mat1)",
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the "
        "same or input should be a MKLDNN tensor and weight is a dense tensor",
    ],
)
def test_tensor_left_on_cpu_is_told_on_gpu_ranks_only(message: str) -> None:
    assert found(message) == ["cpu-tensor-on-gpu-ranks"]
    assert found(message, device="cpu") != ["cpu-tensor-on-gpu-ranks"]


def test_ranks_on_one_gpu_are_shown_the_line_that_gives_each_its_own() -> None:
    message = (
        "NCCL error in: ProcessGroupNCCL.cpp:1, invalid usage\nncclInvalidUsage: This usually "
        "reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 0 "
        "and rank 1 both on CUDA device 18000"
    )
    assert found(message) == ["ranks-share-a-gpu"]


def test_full_gpu_is_no_matter_of_the_runs_memory_limit() -> None:
    message = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of ..."
    assert found(message, status="out_of_memory") == ["gpu-out-of-memory"]


def test_failing_cuda_call_on_gpu_ranks_is_not_taken_for_one_on_cpu_ranks() -> None:
    message = "CUDA error: device-side assert triggered"
    assert found(message) == ["exception"]
    assert found(message, device="cpu") == ["cuda-on-cpu-ranks"]


def test_share_of_a_gpu_waits_for_cuda_to_be_used() -> None:
    code = (
        "import torch\nfrom engine.gpu_memory import bound_gpu_memory\n"
        "bound_gpu_memory(0.5, 0)\nassert not torch.cuda.is_initialized()\nprint(torch.ones(1))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert done.stdout == "tensor([1.])\n", done.stderr


def test_share_of_a_gpu_is_at_most_all_of_it() -> None:
    assert Limits(gpu_memory_fraction=1.0).gpu_memory_fraction == 1
    with pytest.raises(ValueError, match="gpu_memory_fraction must be at most 1"):
        Limits(gpu_memory_fraction=1.5)
