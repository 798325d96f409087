"""Grades questions for a number. May import lessons."""

from collections.abc import Mapping
from fractions import Fraction

from app.grading.numerals import Quantity, as_unit, read_quantity
from app.grading.verdicts import Part, Verdict, verdict_of
from app.grading.words import (
    DECIMAL_POINT,
    LOOK_AT_UNIT,
    NO_NUMBER_YET,
    NO_UNIT_YET,
    NOT_A_NUMBER,
    NOT_THIS_NUMBER,
    ONLY_A_NUMBER,
    UNKNOWN_UNIT,
)
from app.i18n import Language
from app.lessons import Localized, NumericCheck, WrongNumber

_VALUE = "value"
_UNIT = "unit"
_ROUNDING = Fraction(4, 2**52)
"""What the check's floats may be off by: none of 0.3, 0.01 * 0.3 and 1 / 1024 need be exact."""
_WRONG_TOLERANCE = Fraction(1, 10**9)


def grade_number(check: NumericCheck, given: Mapping[str, str], language: Language) -> Verdict:
    """Grade a number, in the unit that is written behind it, else in the one that was chosen."""
    return verdict_of((_part(check, given),), language)


def _part(check: NumericCheck, given: Mapping[str, str]) -> Part:
    text = given.get(_VALUE, "")
    if not text.strip():
        return _not_given(NO_NUMBER_YET)
    quantity = read_quantity(text)
    if quantity is None:
        return _not_given(NOT_A_NUMBER)
    factors = _factors(check)
    factor = _factor(check, factors, quantity, given.get(_UNIT, ""))
    if isinstance(factor, Localized):
        return _not_given(factor)
    value = quantity.number * factor
    if _is_right(check, value):
        return Part(item_id=_VALUE, is_given=True, is_right=True, feedback=check.explanation)
    wrong = _recognised(check, value)
    if wrong is not None:
        return _wrong(wrong.feedback, wrong.misconception)
    elsewhere = any(_is_right(check, quantity.number * other) for other in factors.values())
    return _wrong(LOOK_AT_UNIT if elsewhere else NOT_THIS_NUMBER)


def _not_given(feedback: Localized) -> Part:
    return Part(item_id=_VALUE, is_given=False, is_right=False, feedback=feedback)


def _wrong(feedback: Localized, misconception: str | None = None) -> Part:
    return Part(
        item_id=_VALUE,
        is_given=True,
        is_right=False,
        feedback=feedback,
        misconception=misconception,
    )


def _factors(check: NumericCheck) -> dict[str, Fraction]:
    """Each unit in units of the answer's."""
    if check.unit is None:
        return {}
    return {as_unit(name): Fraction(size) for name, size in (*check.units, (check.unit, 1.0))}


def _factor(
    check: NumericCheck, factors: Mapping[str, Fraction], quantity: Quantity, chosen: str
) -> Fraction | Localized:
    """What to multiply the number with, or what keeps it from being read."""
    if quantity.unit:
        factor = _lookup(factors, quantity.unit)
        if factor is not None:
            return factor
        if quantity.unit.startswith(","):
            return DECIMAL_POINT
        if not (quantity.unit[0].isalpha() or quantity.unit[0] in "%°/"):
            return NOT_A_NUMBER
        return UNKNOWN_UNIT if factors else ONLY_A_NUMBER
    if check.unit is None or not check.units:
        return Fraction(1)
    factor = factors.get(as_unit(chosen))
    return NO_UNIT_YET if factor is None else factor


def _lookup(factors: Mapping[str, Fraction], unit: str) -> Fraction | None:
    """The unit as written, else the only one that differs in upper and lower case alone."""
    if unit in factors:
        return factors[unit]
    alike = [factor for name, factor in factors.items() if name.casefold() == unit.casefold()]
    return alike[0] if len(alike) == 1 else None


def _is_right(check: NumericCheck, value: Fraction) -> bool:
    answer, tolerance = Fraction(check.answer), Fraction(check.tolerance)
    rounding = _ROUNDING * (abs(answer) + tolerance)
    return abs(value - answer) <= tolerance + rounding


def _recognised(check: NumericCheck, value: Fraction) -> WrongNumber | None:
    """The wrong number of the author's that this one is, or is nearest to."""
    tolerance = Fraction(check.tolerance)
    distances = [(abs(value - Fraction(wrong.value)), wrong) for wrong in check.wrong]
    near = [
        (distance, wrong)
        for distance, wrong in distances
        if distance <= max(tolerance, abs(Fraction(wrong.value)) * _WRONG_TOLERANCE)
    ]
    return min(near, key=lambda pair: pair[0])[1] if near else None
