"""Grades matching questions, item by item. May import lessons."""

from collections.abc import Mapping

from app.grading.verdicts import Part, Verdict, verdict_of
from app.grading.words import NOT_THIS, NOTHING_CHOSEN
from app.i18n import Language
from app.lessons import MatchCheck, MatchItem


def grade_match(check: MatchCheck, given: Mapping[str, str], language: Language) -> Verdict:
    """Grade item id -> choice id."""
    parts = tuple(_part(check, item, given.get(item.id)) for item in check.items)
    return verdict_of(parts, language)


def _part(check: MatchCheck, item: MatchItem, given: str | None) -> Part:
    choice = check.choice(given) if given else None
    if choice is None:
        return Part(item_id=item.id, is_given=False, is_right=False, feedback=NOTHING_CHOSEN)
    is_right = choice.id == item.answer_choice_id
    written = next((f.text for f in item.feedback if f.choice_id == choice.id), NOT_THIS)
    return Part(
        item_id=item.id,
        is_given=True,
        is_right=is_right,
        feedback=item.explanation if is_right else written,
    )
