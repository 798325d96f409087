"""Rules between the parts of a check, which no single key can state.

May import schema and the engine's leaves. Each returns problems at their positions.
"""

import difflib
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from math import isclose

from app.lessons.reading_checks import tolerance_of
from app.lessons.rules_basics import Named, check_unique, ids_of
from app.lessons.rules_code import check_fill, check_order
from app.schema import Document, MisconceptionsFile, Path, Problem
from app.schema.checks import (
    CheckEntry,
    FillEntry,
    MatchEntry,
    MultipleEntry,
    NumericEntry,
    OrderEntry,
    SingleEntry,
)
from engine.messages import DIAGNOSES

_RESERVED = "answered"
"""The field of a `multiple` that says that something was sent; options are fields beside it."""
_ROUNDING = Fraction(4, 2**52)
"""What floats of a file may be off by: 0.4 - 0.3 is not 0.1."""
_ALIKE = 1e-9
"""Relative distance of two wrong numbers that no learner's answer can tell apart."""


def check_misconceptions(document: Document, file: MisconceptionsFile) -> Iterator[Problem]:
    """Ids of a catalogue."""
    named = ids_of((), "misconceptions", file.misconceptions)
    yield from check_unique(document, named, "misconception")


def check_check(
    document: Document, check: CheckEntry, path: Path, misconceptions: frozenset[str] | None
) -> Iterator[Problem]:
    """All rules of a check; `misconceptions` is None where their file is broken."""
    match check:
        case MatchEntry():
            yield from _check_match(document, check, path)
        case SingleEntry():
            yield from _check_single(document, check, path)
        case MultipleEntry():
            yield from _check_multiple(document, check, path)
        case OrderEntry():
            yield from check_order(document, check, path)
        case NumericEntry():
            yield from _check_numeric(document, check, path)
        case FillEntry():
            yield from check_fill(document, check, path)
    if misconceptions is not None:
        known = sorted(misconceptions | DIAGNOSES.keys())
        for name, where in _misconceptions(check):
            if name not in known:
                yield document.problem((*path, *where), _unknown(name, known))


def _misconceptions(check: CheckEntry) -> Iterator[Named]:
    """What wrong answers are said to show, by their paths in the check."""
    found: list[tuple[str | None, Path]] = []
    match check:
        case SingleEntry() | MultipleEntry():
            found = [(o.misconception, ("options", n)) for n, o in enumerate(check.options)]
        case OrderEntry():
            found = [(d.misconception, ("distractors", n)) for n, d in enumerate(check.distractors)]
        case NumericEntry():
            found = [(w.misconception, ("wrong", n)) for n, w in enumerate(check.wrong)]
        case FillEntry():
            found = [
                (wrong.misconception, ("gaps", number, "wrong", place))
                for number, gap in enumerate(check.gaps)
                for place, wrong in enumerate(gap.wrong)
            ]
    for name, path in found:
        if name is not None:
            yield name, (*path, "misconception")


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "write it into misconceptions.yaml"
    return f"there is no misconception `{name}`: {hint}"


def _check_match(document: Document, match: MatchEntry, path: Path) -> Iterator[Problem]:
    choices = [choice.id for choice in match.choices]
    known = ", ".join(choices)
    yield from check_unique(document, ids_of(path, "choices", match.choices), "choice")
    yield from check_unique(document, ids_of(path, "items", match.items), "item")
    for number, item in enumerate(match.items):
        here = (*path, "items", number)
        if item.answer not in choices:
            message = f"`answer` must be one of the choices: {known}"
            yield document.problem((*here, "answer"), message)
        for choice_id in item.feedback:
            where = (*here, "feedback", choice_id)
            if choice_id not in choices:
                yield document.problem(where, f"there is no choice `{choice_id}`", at_key=True)
            elif choice_id == item.answer:
                message = "this is the right choice: what to say belongs into `explanation`"
                yield document.problem(where, message, at_key=True)


def _check_single(document: Document, single: SingleEntry, path: Path) -> Iterator[Problem]:
    yield from check_unique(document, ids_of(path, "options", single.options), "option")
    options = [option.id for option in single.options]
    if single.answer not in options:
        message = f"`answer` must be one of the options: {', '.join(options)}"
        yield document.problem((*path, "answer"), message)
    for number, option in enumerate(single.options):
        if option.id != single.answer:
            continue
        for key in ("feedback", "misconception"):
            if getattr(option, key) is not None:
                message = "this is the right option: what to say belongs into `explanation`"
                yield document.problem((*path, "options", number, key), message, at_key=True)


def _check_multiple(document: Document, multiple: MultipleEntry, path: Path) -> Iterator[Problem]:
    yield from check_unique(document, ids_of(path, "options", multiple.options), "option")
    options = [option.id for option in multiple.options]
    for number, option_id in enumerate(options):
        if option_id == _RESERVED:
            message = f"the id `{_RESERVED}` belongs to the page: choose another"
            yield document.problem((*path, "options", number, "id"), message)
    for number, answer in enumerate(multiple.answers):
        where = (*path, "answers", number)
        if answer not in options:
            message = f"`answers` must be of the options: {', '.join(options)}"
            yield document.problem(where, message)
        elif answer in multiple.answers[:number]:
            yield document.problem(where, f"the answer `{answer}` is here twice: keep one")


def _check_numeric(document: Document, numeric: NumericEntry, path: Path) -> Iterator[Problem]:
    is_relative = "tolerance" in numeric.model_fields_set and numeric.tolerance.absolute is None
    if is_relative and numeric.answer == 0:
        message = "nothing is relative to the answer 0: write `absolute`"
        yield document.problem((*path, "tolerance", "relative"), message, at_key=True)
    yield from _check_units(document, numeric, path)
    answer, tolerance = Fraction(numeric.answer), Fraction(tolerance_of(numeric))
    margin = tolerance + _ROUNDING * (abs(answer) + tolerance)
    values = [wrong.value for wrong in numeric.wrong]
    for number, value in enumerate(values):
        where = (*path, "wrong", number, "value")
        if abs(Fraction(value) - answer) <= margin:
            message = "this number is right: it lies within the tolerance of `answer`"
            yield document.problem(where, message)
        elif any(isclose(value, other, rel_tol=_ALIKE) for other in values[:number]):
            yield document.problem(where, f"the wrong number {value:g} is here twice: keep one")


def _check_units(document: Document, numeric: NumericEntry, path: Path) -> Iterator[Problem]:
    if numeric.unit is None:
        if numeric.units:
            message = "`units` are counted in `unit`: write the unit of `answer`, like `unit: MiB`"
            yield document.problem((*path, "units"), message, at_key=True)
        return
    seen: set[str] = set()
    for name in numeric.units:
        where = (*path, "units", name)
        if _as_unit(name) == _as_unit(numeric.unit):
            message = f"`{name}` is `unit` already: take it out of `units`"
            yield document.problem(where, message, at_key=True)
        elif _as_unit(name) in seen:
            message = f"the unit `{name}` is here twice: keep one"
            yield document.problem(where, message, at_key=True)
        seen.add(_as_unit(name))


def _as_unit(text: str) -> str:
    """A unit as answers are compared: without blanks, and each of its signs in one form."""
    return "".join(unicodedata.normalize("NFKC", text).split())
