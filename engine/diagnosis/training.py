"""Rules for mistakes of training that torch refuses with a message of its own."""

from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis


def one_sample_per_rank(case: Case) -> Diagnosis | None:
    """Batch norm in training mode got one value per channel, of which no variance can be taken."""
    return _say_if(case, "Expected more than 1 value per channel", "one-sample-per-rank")


def forward_bypassed(case: Case) -> Diagnosis | None:
    """A sharded module was used without its forward, so nothing gathered its parameters."""
    return _say_if(case, "got mixed torch.Tensor and DTensor", "forward-bypassed")


def _say_if(case: Case, refusal: str, code: str) -> Diagnosis | None:
    failure, end = case.first_failure, case.first_failed
    if failure is None or end is None or refusal not in failure.message:
        return None
    args = {"rank": end.rank, "line": failure.line}
    return say(code, args, line=failure.line, rank=end.rank)
