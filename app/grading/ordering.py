"""Grades lines of code that were put in order. May import lessons.

Only lines with a place are marked. Of those that stand too early the first alone is: what comes
after may fall into place with it. That a line is missing is said only once none is used that does
not belong into the program, else one answer could tell which lines do.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping

from app.grading.verdicts import Part, Verdict, verdict_of
from app.grading.words import (
    LINE_MISSING,
    LINE_NOT_NEEDED,
    NEEDED_COMES_LATER,
    NO_PLACE,
    NOT_ALL_LINES,
    NOTHING_PLACED,
    OTHER_LINES,
    SAME_PLACE,
)
from app.i18n import Language
from app.lessons import Localized, OrderCheck, OrderLine

_MAX_CHARACTERS = 20
_PLACE = re.compile(r"0*([1-9][0-9]{0,3})")


def grade_order(check: OrderCheck, given: Mapping[str, str], language: Language) -> Verdict:
    """Grade line id -> place; a line without one is left out.

    The parts come in the order of the page: the check's own order is the answer.
    """
    lines = check.shown_lines()
    written = {line.id: given[line.id] for line in lines if given.get(line.id, "").strip()}
    read = {line_id: _place(text) for line_id, text in written.items()}
    places = {line_id: place for line_id, place in read.items() if place is not None}
    unread = read.keys() - places.keys()
    if not unread and _is_right(check, places):
        parts = tuple(Part(item_id=n.id, is_given=n.id in places, is_right=True) for n in lines)
        return verdict_of(parts, language, check.explanation)
    marks = {part.item_id: part for part in _marks(check, places)}
    parts = tuple(
        marks.get(line.id)
        or Part(
            item_id=line.id,
            is_given=False,
            is_right=False,
            feedback=NO_PLACE if line.id in unread else None,
        )
        for line in lines
    )
    return verdict_of(parts, language, remark=_remark(check, places, written.keys()))


def _place(text: str) -> int | None:
    """A whole number from 1 on, in digits of any width."""
    if len(text) > _MAX_CHARACTERS:
        return None
    found = _PLACE.fullmatch(unicodedata.normalize("NFKC", text).strip())
    return int(found[1]) if found else None


def _is_right(check: OrderCheck, places: Mapping[str, int]) -> bool:
    needed = [line for line in check.lines if line.is_needed]
    return (
        places.keys() == {line.id for line in needed}
        and len(set(places.values())) == len(places)
        and all(places[before] < places[line.id] for line in needed for before in line.after)
    )


def _marks(check: OrderCheck, places: Mapping[str, int]) -> list[Part]:
    """What can be said of lines with a place in a wrong answer."""
    placed = sorted(
        (line for line in check.shown_lines() if line.id in places), key=lambda n: places[n.id]
    )
    surplus = [line for line in placed if not line.is_needed]
    if surplus and len(placed) == len(check.lines):
        return [_not_needed(surplus[0])]
    uses = Counter(places.values())
    early = [line.id for line in placed if _stands_before_its_needs(line, places)]
    marks = []
    for line in placed:
        if not line.is_needed:
            marks.append(_not_needed(line))
        elif uses[places[line.id]] > 1:
            marks.append(_wrong(line, SAME_PLACE))
        elif line.id in early[:1]:
            marks.append(_wrong(line, NEEDED_COMES_LATER))
        elif line.id not in early and line.after <= places.keys():
            marks.append(Part(item_id=line.id, is_given=True, is_right=True))
    return marks


def _stands_before_its_needs(line: OrderLine, places: Mapping[str, int]) -> bool:
    return any(places.get(before, 0) > places[line.id] for before in line.after)


def _wrong(line: OrderLine, feedback: Localized) -> Part:
    return Part(item_id=line.id, is_given=True, is_right=False, feedback=feedback)


def _not_needed(line: OrderLine) -> Part:
    return Part(
        item_id=line.id,
        is_given=True,
        is_right=False,
        feedback=line.feedback or LINE_NOT_NEEDED,
        misconception=line.misconception,
    )


def _remark(
    check: OrderCheck, places: Mapping[str, int], written: Collection[str]
) -> Localized | None:
    if not written:
        return NOTHING_PLACED
    if any(line.id in places and not line.is_needed for line in check.lines):
        return NOT_ALL_LINES if len(places) == len(check.lines) else OTHER_LINES
    if any(line.is_needed and line.id not in written for line in check.lines):
        return LINE_MISSING
    return None
