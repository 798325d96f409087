"""The rule for what torch refuses: why, and what to change. May import the engine's leaves."""

from engine.diagnosis.partners import detail_of
from engine.diagnosis.refused.communication import COMMUNICATION
from engine.diagnosis.refused.cpu import ON_CPU
from engine.diagnosis.refused.refusal import statement
from engine.diagnosis.refused.sharding import SHARDING
from engine.diagnosis.refused.states import STATES
from engine.diagnosis.refused.training import TRAINING
from engine.diagnosis.rule import Case, say
from engine.diagnosis.standing import Standing
from engine.echo import is_lost
from engine.events import Diagnosis, Failure
from engine.facts import Args

_REFUSALS = (*SHARDING, *STATES, *COMMUNICATION, *TRAINING, *ON_CPU)
_MAX_CALL = 70
_MAX_DETAIL = 160


def refused(case: Case) -> Diagnosis | None:
    """The first failure is one that torch raises for a known mistake."""
    failure, end = case.first_failure, case.first_failed
    if failure is None or end is None or failure.line is None or is_lost(failure):
        return None
    for refusal in _REFUSALS:
        groups = refusal.match(case, failure)
        if groups is not None:
            args: Args = {
                **groups,
                "rank": end.rank,
                "line": failure.line,
                "call": _call(case, failure),
                "detail": detail_of(failure, _MAX_DETAIL),
                "where": Standing(case).where,
            }
            return say(refusal.code, args, line=failure.line, rank=end.rank)
    return None


def _call(case: Case, failure: Failure) -> str:
    """What raised, as the learner wrote it: the innermost expression, on one line."""
    text = " ".join(part.strip() for part in statement(case, failure).splitlines())
    lines = case.program.source.splitlines()
    number = failure.line or 1
    # A rank may name a line that its program has not.
    if number == failure.end_line and failure.column is not None and number <= len(lines):
        text = lines[number - 1][failure.column : failure.end_column].strip() or text
    return text if len(text) <= _MAX_CALL else text[: _MAX_CALL - 3] + "..."
