"""One kind of refusal by torch, and how it is recognised. May import the engine's leaves."""

import re
from dataclasses import dataclass

from engine.diagnosis.places import Places
from engine.diagnosis.rule import Case
from engine.diagnosis.standing import call_name
from engine.events import Failure

_TIED = re.compile(r"\.weight\s*=\s*[\w.\[\]]+\.weight\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A message of torch that has one known cause; patterns are regular expressions."""

    code: str
    message: str
    """Found in the exception's message; its named groups become arguments of the sentence."""
    text: str | None = None
    """Found in the learner's statement that raised."""
    source: str | None = None
    """Found in the program."""
    after: str | None = None
    """Name of a function that the program calls on an earlier line."""
    tied: bool = False
    """Whether the program gives one layer's weight to another."""

    def match(self, case: Case, failure: Failure) -> dict[str, str] | None:
        """The named groups of the message where this is the refusal, else None."""
        found = re.search(self.message, failure.message)
        if found is None:
            return None
        source = case.program.source
        if self.text is not None and not re.search(self.text, statement(case, failure)):
            return None
        if self.source is not None and not re.search(self.source, source):
            return None
        if self.tied and not _TIED.search(source):
            return None
        groups = {name: value for name, value in found.groupdict().items() if value is not None}
        if self.after is None:
            return groups
        line = _called_before(case, failure, self.after)
        return None if line is None else {**groups, "at": str(line)}


def statement(case: Case, failure: Failure) -> str:
    """The lines of the learner's program that raised."""
    lines = case.program.source.splitlines()
    first = failure.line or 0
    return "\n".join(lines[max(first - 1, 0) : max(failure.end_line or first, first)])


def _called_before(case: Case, failure: Failure, name: str) -> int | None:
    calls = Places(case.program.source).all_calls()
    lines = [call.lineno for call in calls if call_name(call).endswith(name)]
    return max((line for line in lines if line < (failure.line or 0)), default=None)
