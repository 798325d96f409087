"""Grades answers. May import lessons and i18n; keys never leave the server.

An answer is a map of short texts, see `app.lessons.checks`. Whatever a browser sends is graded:
unknown fields and values count as no answer, never as an error.
"""

from collections.abc import Mapping

from app.grading.choosing import grade_multiple, grade_single
from app.grading.filling import grade_gaps
from app.grading.matching import grade_match
from app.grading.numbers import grade_number
from app.grading.ordering import grade_order
from app.grading.verdicts import ItemVerdict, Verdict
from app.i18n import Language
from app.lessons import (
    Check,
    FillCheck,
    MatchCheck,
    MultipleCheck,
    NumericCheck,
    OrderCheck,
    SingleCheck,
)

__all__ = ["ItemVerdict", "Verdict", "grade"]


def grade(check: Check, given: Mapping[str, str], language: Language) -> Verdict:
    """The grade of an answer, with what to say to each part of it."""
    match check:
        case MatchCheck():
            return grade_match(check, given, language)
        case SingleCheck():
            return grade_single(check, given, language)
        case MultipleCheck():
            return grade_multiple(check, given, language)
        case OrderCheck():
            return grade_order(check, given, language)
        case NumericCheck():
            return grade_number(check, given, language)
        case FillCheck():
            return grade_gaps(check, given, language)
