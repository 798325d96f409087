"""Rules for mistakes of training that torch refuses with a message of its own."""

import re

from engine.diagnosis.refused.refusal import statement
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis


def one_sample_per_rank(case: Case) -> Diagnosis | None:
    """Batch norm in training mode got one value per channel, of which no variance can be taken."""
    return _say_if(case, "Expected more than 1 value per channel", "one-sample-per-rank")


def forward_bypassed(case: Case) -> Diagnosis | None:
    """A sharded module was used without its forward, so nothing gathered its parameters."""
    failure = case.first_failure
    if failure is None or "fully_shard" not in case.program.source:
        return None
    mixed = _MIXED.match(failure.message)
    if mixed is None or not (mixed[1] in _OF_LAYERS or "self." in statement(case, failure)):
        return None
    return _say_if(case, mixed[0], "forward-bypassed")


_MIXED = re.compile(r"aten\.(\w+)[.\w]* got mixed torch\.Tensor and DTensor")
_OF_LAYERS = (
    "addmm",
    "mm",
    "bmm",
    "matmul",
    "linear",
    "convolution",
    "embedding",
    "native_layer_norm",
    "native_group_norm",
    "native_batch_norm",
    "_fused_rms_norm",
)
"""Ops by which a layer applies its parameters to its input."""


def _say_if(case: Case, refusal: str, code: str) -> Diagnosis | None:
    failure, end = case.first_failure, case.first_failed
    if failure is None or end is None or refusal not in failure.message:
        return None
    args = {"rank": end.rank, "line": failure.line}
    return say(code, args, line=failure.line, rank=end.rank)
