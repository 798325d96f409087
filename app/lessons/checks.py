"""Checks as the rest of the app sees them: questions with their keys. May import texts.

A learner's answer is a map of short texts, one per field of the check; which fields there are says
`fields`. What a page may show before the answer is in `shown_*` and the prompt, and nothing else.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from app.lessons.texts import Localized


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


_Part = TypeVar("_Part", bound=_HasId)


def shuffled(check_id: str, parts: Iterable[_Part]) -> tuple[_Part, ...]:
    """The parts in an order that tells nothing, the same on every visit."""
    return tuple(
        sorted(parts, key=lambda p: hashlib.sha256(f"{check_id}/{p.id}".encode()).digest())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchChoice:
    """One answer that items can be matched to."""

    id: str
    text: Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFeedback:
    """What to say when an item was matched to this wrong choice."""

    choice_id: str
    text: Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchItem:
    """One thing to match; the key and the explanation never reach a page before the answer."""

    id: str
    text: Localized
    answer_choice_id: str
    explanation: Localized
    feedback: tuple[MatchFeedback, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCheck:
    """A matching question."""

    id: str
    prompt: Localized
    items: tuple[MatchItem, ...]
    choices: tuple[MatchChoice, ...]
    kind: Literal["match"] = "match"

    def choice(self, choice_id: str) -> MatchChoice | None:
        return next((c for c in self.choices if c.id == choice_id), None)

    def shown_choices(self) -> tuple[MatchChoice, ...]:
        """The choices in an order that tells nothing, the same on every visit."""
        return shuffled(self.id, self.choices)

    @property
    def fields(self) -> tuple[str, ...]:
        """A field per item, with the id of the choice."""
        return tuple(item.id for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One answer to choose; `feedback` is for whoever is wrong about it."""

    id: str
    text: Localized
    feedback: Localized | None
    misconception: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleCheck:
    """A question with one right option."""

    id: str
    prompt: Localized
    options: tuple[Option, ...]
    answer_id: str
    explanation: Localized
    kind: Literal["single"] = "single"

    def shown_options(self) -> tuple[Option, ...]:
        return shuffled(self.id, self.options)

    @property
    def fields(self) -> tuple[str, ...]:
        """`choice`: the id of an option."""
        return ("choice",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleCheck:
    """A question with any number of right options."""

    id: str
    prompt: Localized
    options: tuple[Option, ...]
    answer_ids: frozenset[str]
    explanation: Localized
    kind: Literal["multiple"] = "multiple"

    def shown_options(self) -> tuple[Option, ...]:
        return shuffled(self.id, self.options)

    @property
    def fields(self) -> tuple[str, ...]:
        """A field per option, `on` where it is ticked; and `answered`, that something was sent."""
        return ("answered", *(option.id for option in self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    """A line of code; one that does not belong into the program has feedback."""

    id: str
    code: str
    after: frozenset[str]
    is_needed: bool
    feedback: Localized | None = None
    misconception: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCheck:
    """Lines of code to put in order; every order that `after` allows is right."""

    id: str
    prompt: Localized
    lines: tuple[OrderLine, ...]
    """In a right order, then those that are not needed."""
    explanation: Localized
    kind: Literal["order"] = "order"

    def shown_lines(self) -> tuple[OrderLine, ...]:
        return shuffled(self.id, self.lines)

    @property
    def fields(self) -> tuple[str, ...]:
        """A field per line: its place from 1 on, or nothing where it is left out."""
        return tuple(line.id for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongNumber:
    """A wrong number that learners come to, in the unit of the answer."""

    value: float
    feedback: Localized
    misconception: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericCheck:
    """A question for a number; tolerances are in the unit of the answer."""

    id: str
    prompt: Localized
    answer: float
    tolerance: float
    """The largest difference that is right."""
    unit: str | None
    units: tuple[tuple[str, float], ...]
    """Further units to choose, each in units of `unit`."""
    wrong: tuple[WrongNumber, ...]
    explanation: Localized
    kind: Literal["numeric"] = "numeric"

    def shown_units(self) -> tuple[str, ...]:
        """All units in order of size; none for a bare number."""
        if self.unit is None:
            return ()
        return tuple(name for name, _ in sorted((*self.units, (self.unit, 1.0)), key=_size))

    @property
    def fields(self) -> tuple[str, ...]:
        """`value` as it was written, and `unit`."""
        return ("value", "unit")


def _size(unit: tuple[str, float]) -> tuple[float, str]:
    return unit[1], unit[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongText:
    """Wrong texts that learners write."""

    answers: frozenset[str]
    feedback: Localized
    misconception: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A gap in the code and every text that is right in it."""

    id: str
    answers: tuple[str, ...]
    ignore_case: bool
    wrong: tuple[WrongText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FillCheck:
    """Code with gaps to fill in."""

    id: str
    prompt: Localized
    pieces: tuple[str | Gap, ...]
    """The code, cut at its gaps."""
    explanation: Localized
    kind: Literal["fill"] = "fill"

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Gap))

    @property
    def fields(self) -> tuple[str, ...]:
        """A field per gap with what was written into it."""
        return tuple(gap.id for gap in self.gaps)


Check = SingleCheck | MultipleCheck | MatchCheck | OrderCheck | NumericCheck | FillCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Misconception:
    """Something that learners wrongly believe; several checks may find it."""

    id: str
    title: Localized
