"""What came of an answer. May import lessons and i18n."""

from dataclasses import dataclass

from app.i18n import Language
from app.lessons import Localized, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemVerdict:
    """The grade of one part of an answer: an item, an option, a line, a gap, or the whole of it."""

    item_id: str
    """The field that this is about; of a check with one question its only one."""
    is_given: bool
    """False where nothing is marked: this part was left open, what came is none of its answers, or
    a mark would give the key away. A part that was rightly left open is right all the same."""
    is_right: bool
    feedback: Text | None
    """What to say to it; None where nothing is left to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The grade of one answer."""

    is_right: bool
    num_right: int
    """Parts that are marked as right; more may be while not all of it is."""
    num_items: int
    items: tuple[ItemVerdict, ...]
    explanation: Text | None = None
    """Of the whole check, once all of it is right."""
    remark: Text | None = None
    """What to say of the whole while it is wrong, such as that something is missing."""
    misconceptions: tuple[str, ...] = ()
    """What the wrong parts show, each once, in order."""

    def item(self, item_id: str) -> ItemVerdict | None:
        return next((item for item in self.items if item.item_id == item_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A graded part before a language is chosen."""

    item_id: str
    is_given: bool
    is_right: bool
    feedback: Localized | None = None
    misconception: str | None = None


def verdict_of(
    parts: tuple[Part, ...],
    language: Language,
    explanation: Localized | None = None,
    remark: Localized | None = None,
) -> Verdict:
    """All parts together, in a language; the explanation is for the right, a remark for others."""
    num_right = sum(part.is_right for part in parts)
    is_right = num_right == len(parts)
    shown = [part.misconception for part in parts if part.misconception and not part.is_right]
    return Verdict(
        is_right=is_right,
        num_right=num_right,
        num_items=len(parts),
        items=tuple(
            ItemVerdict(
                item_id=part.item_id,
                is_given=part.is_given,
                is_right=part.is_right,
                feedback=part.feedback.pick(language) if part.feedback else None,
            )
            for part in parts
        ),
        explanation=explanation.pick(language) if explanation and is_right else None,
        remark=remark.pick(language) if remark and not is_right else None,
        misconceptions=tuple(dict.fromkeys(shown)),
    )
