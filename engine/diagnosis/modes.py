"""Rules for training in the wrong mode, and from weights that were never loaded."""

from collections.abc import Iterator

from engine.diagnosis.observed import observed, text
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args


def trained_in_evaluation(case: Case) -> Iterator[Diagnosis]:
    """Validation switched to evaluation mode, and nothing switched back."""
    for seen in observed(case, "evaluating")[:1]:
        args: Args = {"line": seen.line, "layers": text(seen, "layers")}
        yield say("trained-in-evaluation", args, line=seen.line)


def nothing_loaded(case: Case) -> Iterator[Diagnosis]:
    """A state dict of which no key matched."""
    for seen in observed(case, "loaded-nothing")[:1]:
        args: Args = {
            "line": seen.line,
            "key": text(seen, "key"),
            "own_key": text(seen, "own_key"),
        }
        yield say("nothing-loaded", args, line=seen.line, rank=seen.rank)
