"""Grades questions with options to choose. May import lessons.

Of several options only those that were ticked are marked, and that one is missing is said only once
nothing wrong is ticked: else the marks of one answer would tell the whole key. Whoever ticks
everything learns of one wrong option.
"""

from collections.abc import Mapping

from app.grading.verdicts import Part, Verdict, verdict_of
from app.grading.words import (
    NOT_ALL_OPTIONS,
    NOT_THIS,
    NOTHING_CHOSEN,
    NOTHING_TICKED,
    OPTION_MISSING,
    OTHER_OPTIONS,
)
from app.i18n import Language
from app.lessons import Localized, MultipleCheck, Option, SingleCheck

_CHOICE = "choice"
_ANSWERED = "answered"
_TICKED = "on"


def grade_single(check: SingleCheck, given: Mapping[str, str], language: Language) -> Verdict:
    """Grade the option that was chosen; an unknown one counts as none."""
    chosen = next((o for o in check.options if o.id == given.get(_CHOICE)), None)
    return verdict_of((_choice(check, chosen),), language)


def _choice(check: SingleCheck, chosen: Option | None) -> Part:
    if chosen is None:
        return Part(item_id=_CHOICE, is_given=False, is_right=False, feedback=NOTHING_CHOSEN)
    if chosen.id == check.answer_id:
        return Part(item_id=_CHOICE, is_given=True, is_right=True, feedback=check.explanation)
    return _wrong(chosen, _CHOICE)


def _wrong(option: Option, item_id: str) -> Part:
    return Part(
        item_id=item_id,
        is_given=True,
        is_right=False,
        feedback=option.feedback or NOT_THIS,
        misconception=option.misconception,
    )


def grade_multiple(check: MultipleCheck, given: Mapping[str, str], language: Language) -> Verdict:
    """Grade the options that were ticked; without the field `answered` none was."""
    options = check.shown_options()
    ticked = (
        frozenset(option.id for option in options if given.get(option.id) == _TICKED)
        if _ANSWERED in given
        else frozenset()
    )
    if ticked == check.answer_ids:
        parts = tuple(Part(item_id=o.id, is_given=o.id in ticked, is_right=True) for o in options)
        return verdict_of(parts, language, check.explanation)
    wrong = [option.id for option in options if option.id in ticked - check.answer_ids]
    marked = frozenset(wrong[:1]) if len(ticked) == len(options) else ticked
    return verdict_of(
        tuple(_tick(option, check, marked) for option in options),
        language,
        remark=_remark(num_ticked=len(ticked), num_wrong=len(wrong), num_options=len(options)),
    )


def _tick(option: Option, check: MultipleCheck, marked: frozenset[str]) -> Part:
    if option.id not in marked:
        return Part(item_id=option.id, is_given=False, is_right=False)
    if option.id in check.answer_ids:
        return Part(item_id=option.id, is_given=True, is_right=True)
    return _wrong(option, option.id)


def _remark(*, num_ticked: int, num_wrong: int, num_options: int) -> Localized:
    if num_ticked == 0:
        return NOTHING_TICKED
    if num_ticked == num_options:
        return NOT_ALL_OPTIONS
    return OTHER_OPTIONS if num_wrong else OPTION_MISSING
