"""Grades answers. May import lessons and i18n; keys never leave the server."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.i18n import Language
from app.lessons import Localized, MatchCheck, MatchItem, Text

_UNANSWERED = Localized(
    ja="まだ選ばれていません。どれか 1 つを選んでください。",
    en="Nothing is chosen yet. Choose one.",
)
_NOT_THIS = Localized(
    ja="これではありません。この手法が何を取り除くのかを考えてみましょう。",
    en="Not this one. Think about what this technique takes away.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemVerdict:
    """The grade of one item; choice_id is None when nothing (or nothing known) was chosen."""

    item_id: str
    choice_id: str | None
    is_right: bool
    feedback: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The grade of one answer."""

    is_right: bool
    num_right: int
    num_items: int
    items: tuple[ItemVerdict, ...]

    def item(self, item_id: str) -> ItemVerdict | None:
        return next((item for item in self.items if item.item_id == item_id), None)


def grade(check: MatchCheck, answers: Mapping[str, str], language: Language) -> Verdict:
    """Grade item id -> choice id; unknown ids count as no answer, never as an error."""
    items = tuple(_grade_item(check, item, answers.get(item.id), language) for item in check.items)
    num_right = sum(item.is_right for item in items)
    return Verdict(
        is_right=num_right == len(items), num_right=num_right, num_items=len(items), items=items
    )


def _grade_item(
    check: MatchCheck, item: MatchItem, given: str | None, language: Language
) -> ItemVerdict:
    choice = check.choice(given) if given else None
    if choice is None:
        return ItemVerdict(
            item_id=item.id,
            choice_id=None,
            is_right=False,
            feedback=_UNANSWERED.pick(language),
        )
    is_right = choice.id == item.answer_choice_id
    written = next((f.text for f in item.feedback if f.choice_id == choice.id), _NOT_THIS)
    return ItemVerdict(
        item_id=item.id,
        choice_id=choice.id,
        is_right=is_right,
        feedback=(item.explanation if is_right else written).pick(language),
    )
