"""Reads numbers as learners write them. May import the standard library.

`1,024`, `1 024`, `1_024`, `１０２４`, `−3`, `2.5e-3`, `1/3`; a unit may stand behind each.
Values are exact: what a learner wrote is not rounded before it is compared.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

_MAX_CHARACTERS = 100
_MAX_EXPONENT = 308
"""Beyond it lies no float, and powers of ten take long to compute."""
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Full-width signs to the usual ones. Not NFKC, which turns 10³ into 103."""
_MINUS = "-−‐‑‒–—―ー"
_WHOLE = (
    r"(?:[1-9][0-9]{0,2}(?:(?:,[0-9]{3})+|(?:\s[0-9]{3})+)(?![0-9])"  # 0,125 is no thousand
    r"|[0-9]+(?:_[0-9]+)*)"
)
_UNSIGNED = rf"(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][{_MINUS}+]?[0-9]+)?"
_QUANTITY = re.compile(
    rf"(?P<sign>[{_MINUS}+]?)\s*(?P<over>{_UNSIGNED})(?:\s*/\s*(?P<under>{_UNSIGNED}))?"
    r"(?P<unit>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number and whatever stands behind it, perhaps a unit."""

    number: Fraction
    unit: str


def read_quantity(text: str) -> Quantity | None:
    """The quantity that a text begins with; None where there is no number of ordinary size."""
    narrow = text.strip()
    if len(narrow) > _MAX_CHARACTERS:
        return None
    found = _QUANTITY.fullmatch(narrow.translate(_NARROW))
    if found is None:
        return None
    over = _value(found["over"])
    under = Fraction(1) if found["under"] is None else _value(found["under"])
    if over is None or not under:
        return None
    sign = 1 if found["sign"] in ("", "+") else -1
    return Quantity(number=sign * over / under, unit=as_unit(found["unit"]))


def as_unit(text: str) -> str:
    """A unit without blanks, and each of its signs in one form."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _value(digits: str) -> Fraction | None:
    mantissa, _, exponent = re.sub(rf"[{_MINUS}]", "-", digits).lower().partition("e")
    power = exponent.lstrip("+-").lstrip("0")
    if len(power) > len(str(_MAX_EXPONENT)) or int(power or 0) > _MAX_EXPONENT:
        return None
    value = Fraction(re.sub(r"[,_\s]", "", mantissa))
    ten = Fraction(10) ** int(power or 0)
    return value / ten if exponent.startswith("-") else value * ten
