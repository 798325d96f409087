"""The rule for programs that ask CPU ranks for CUDA: shows the device-neutral line."""

import re

from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args

_REFUSALS = re.compile(
    r"not compiled with CUDA|no NVIDIA driver|No CUDA GPUs|CUDA (driver|error)|_cuda_|"
    r"torch\._C' has no attribute '_cuda|Invalid device id|cuda.*not available",
    re.I,
)
_SETUP = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def cuda_on_cpu_ranks(case: Case) -> Diagnosis | None:
    """`.cuda()`, torch.cuda.set_device and "cuda:0" are not imitated on CPU ranks."""
    failure = case.first_failure
    end = case.first_failed
    if failure is None or end is None or not _REFUSALS.search(failure.message):
        return None
    text = case.line_text(failure.line)
    neutral = _neutral(text)
    args: Args = {"line": failure.line, "suggestion": neutral, "setup": _SETUP}
    code = "cuda-on-cpu-ranks"
    if neutral == text:
        args, code = {"line": failure.line, "suggestion": _guarded(text)}, "cuda-call-on-cpu-ranks"
    return say(code, args, line=failure.line, rank=end.rank)


def _neutral(text: str) -> str:
    """The learner's own line, rewritten so that it runs on either device; else unchanged."""
    neutral = re.sub(r"\.cuda\([^()]*\)", ".to(device)", text)
    neutral = re.sub(r"\.to\(\s*(f?[\"']cuda[^\"']*[\"'])\s*\)", ".to(device)", neutral)
    return re.sub(r"device\s*=\s*f?[\"']cuda[^\"']*[\"']", "device=device", neutral)


def _guarded(text: str) -> str:
    return f"if torch.cuda.is_available(): {text}"
