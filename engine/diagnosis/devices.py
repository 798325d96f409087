"""The rules for programs and ranks on unlike devices: CUDA on CPU ranks, CPU on GPU ranks."""

import re

from engine.diagnosis.partners import detail_of
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args

_REFUSALS = re.compile(
    r"not compiled with CUDA|no NVIDIA driver|No CUDA GPUs|CUDA (driver|error)|_cuda_|"
    r"torch\._C' has no attribute '_cuda|Invalid device id|cuda.*not available",
    re.I,
)
_ON_CPU = re.compile(
    r"No backend type associated with device type cpu|Tensors must be CUDA and dense|"
    r"SyncBatchNorm expected input tensor to be on|layers only work with GPU modules|"
    r"Expected all tensors to be on the same device|Input type \(torch\.FloatTensor\)",
)
_SHARED_GPU = re.compile(r"Duplicate GPU detected")
_GPU_IS_FULL = re.compile(r"CUDA out of memory|CUDA error: out of memory")
_SETUP = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
_OWN_GPU = 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))'
_OWN_DEVICE = 'device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))'


def cuda_on_cpu_ranks(case: Case) -> Diagnosis | None:
    """`.cuda()`, torch.cuda.set_device and "cuda:0" are not imitated on CPU ranks."""
    failure = case.first_failure
    end = case.first_failed
    if failure is None or end is None or not _REFUSALS.search(failure.message):
        return None
    if _are_on_gpus(case):
        return None
    text = case.line_text(failure.line)
    neutral = _neutral(text)
    args: Args = {"line": failure.line, "suggestion": neutral, "setup": _SETUP}
    code = "cuda-on-cpu-ranks"
    if neutral == text:
        args, code = {"line": failure.line, "suggestion": _guarded(text)}, "cuda-call-on-cpu-ranks"
    return say(code, args, line=failure.line, rank=end.rank)


def amiss_on_gpu_ranks(case: Case) -> Diagnosis | None:
    """A tensor left on CPU, one GPU for several ranks, or no memory left on it."""
    failure, end = case.first_failure, case.first_failed
    if failure is None or end is None or not _are_on_gpus(case):
        return None
    detail = detail_of(failure)
    args: Args = {"rank": end.rank, "line": failure.line, "detail": detail}
    if _GPU_IS_FULL.search(failure.message):
        percent = round(100 * case.program.limits.gpu_memory_fraction)
        args = {**args, "percent": percent}
        return say("gpu-out-of-memory", args, line=failure.line, rank=end.rank)
    if _SHARED_GPU.search(failure.message):
        args = {"setup": _OWN_GPU, "detail": detail}
        return say("ranks-share-a-gpu", args, line=failure.line, rank=end.rank)
    if _ON_CPU.search(failure.message):
        args = {**args, "call": case.line_text(failure.line), "setup": _OWN_DEVICE}
        return say("cpu-tensor-on-gpu-ranks", args, line=failure.line, rank=end.rank)
    return None


def _are_on_gpus(case: Case) -> bool:
    return case.trace.started is not None and case.trace.started.device == "cuda"


def _neutral(text: str) -> str:
    """The learner's own line, rewritten so that it runs on either device; else unchanged."""
    neutral = re.sub(r"\.cuda\([^()]*\)", ".to(device)", text)
    neutral = re.sub(r"\.to\(\s*(f?[\"']cuda[^\"']*[\"'])\s*\)", ".to(device)", neutral)
    return re.sub(r"device\s*=\s*f?[\"']cuda[^\"']*[\"']", "device=device", neutral)


def _guarded(text: str) -> str:
    return f"if torch.cuda.is_available(): {text}"
