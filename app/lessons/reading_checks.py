"""Turns the checks of valid lesson files into the model. May import schema."""

import re

from app.lessons.checks import (
    Check,
    FillCheck,
    Gap,
    MatchCheck,
    MatchChoice,
    MatchFeedback,
    MatchItem,
    Misconception,
    MultipleCheck,
    NumericCheck,
    Option,
    OrderCheck,
    OrderLine,
    SingleCheck,
    WrongNumber,
    WrongText,
)
from app.lessons.texts import Localized
from app.schema import MisconceptionsFile
from app.schema.basics import LocalizedEntry
from app.schema.checks import (
    CheckEntry,
    FillEntry,
    GapEntry,
    MatchEntry,
    MultipleEntry,
    NumericEntry,
    OptionEntry,
    OrderEntry,
    SingleEntry,
)

GAP = re.compile(r"\{\{([a-z0-9-]+)\}\}")
"""Where a gap may stand in code; it is one where its id is declared."""


def read_text(entry: LocalizedEntry) -> Localized:
    """A text in its languages."""
    return Localized(ja=entry.ja, en=entry.en)


def read_check(entry: CheckEntry) -> Check:
    """A check of whatever kind."""
    match entry:
        case MatchEntry():
            return _match(entry)
        case SingleEntry():
            return _single(entry)
        case MultipleEntry():
            return _multiple(entry)
        case OrderEntry():
            return _order(entry)
        case NumericEntry():
            return _numeric(entry)
        case FillEntry():
            return _fill(entry)


def read_misconceptions(file: MisconceptionsFile) -> tuple[Misconception, ...]:
    """The catalogue of a folder, in the order of its file."""
    return tuple(
        Misconception(id=entry.id, title=read_text(entry.title)) for entry in file.misconceptions
    )


def tolerance_of(entry: NumericEntry) -> float:
    """The tolerance in the unit of the answer."""
    if entry.tolerance.absolute is not None:
        return entry.tolerance.absolute
    assert entry.tolerance.relative is not None, "the schema demands one of both"
    return entry.tolerance.relative * abs(entry.answer)


def cut_at_gaps(code: str, gap_ids: frozenset[str]) -> tuple[tuple[str, bool], ...]:
    """Pieces of code and ids of gaps in turn, each with whether it is a gap's; none is empty."""
    pieces: list[tuple[str, bool]] = []
    begin = 0
    for found in GAP.finditer(code):
        if found[1] in gap_ids:
            pieces += [(code[begin : found.start()], False), (found[1], True)]
            begin = found.end()
    pieces.append((code[begin:], False))
    return tuple(piece for piece in pieces if piece[0])


def _match(entry: MatchEntry) -> MatchCheck:
    return MatchCheck(
        id=entry.id,
        prompt=read_text(entry.prompt),
        choices=tuple(MatchChoice(id=c.id, text=read_text(c.text)) for c in entry.choices),
        items=tuple(
            MatchItem(
                id=item.id,
                text=read_text(item.text),
                answer_choice_id=item.answer,
                explanation=read_text(item.explanation),
                feedback=tuple(
                    MatchFeedback(choice_id=choice_id, text=read_text(text))
                    for choice_id, text in item.feedback.items()
                ),
            )
            for item in entry.items
        ),
    )


def _option(entry: OptionEntry) -> Option:
    return Option(
        id=entry.id,
        text=read_text(entry.text),
        feedback=None if entry.feedback is None else read_text(entry.feedback),
        misconception=entry.misconception,
    )


def _single(entry: SingleEntry) -> SingleCheck:
    return SingleCheck(
        id=entry.id,
        prompt=read_text(entry.prompt),
        options=tuple(_option(option) for option in entry.options),
        answer_id=entry.answer,
        explanation=read_text(entry.explanation),
    )


def _multiple(entry: MultipleEntry) -> MultipleCheck:
    return MultipleCheck(
        id=entry.id,
        prompt=read_text(entry.prompt),
        options=tuple(_option(option) for option in entry.options),
        answer_ids=frozenset(entry.answers),
        explanation=read_text(entry.explanation),
    )


def _order(entry: OrderEntry) -> OrderCheck:
    needed = (
        OrderLine(
            id=line.id,
            code=line.code.rstrip("\n"),
            after=frozenset(line.after),
            is_needed=True,
        )
        for line in entry.lines
    )
    distractors = (
        OrderLine(
            id=line.id,
            code=line.code.rstrip("\n"),
            after=frozenset(),
            is_needed=False,
            feedback=read_text(line.feedback),
            misconception=line.misconception,
        )
        for line in entry.distractors
    )
    return OrderCheck(
        id=entry.id,
        prompt=read_text(entry.prompt),
        lines=(*needed, *distractors),
        explanation=read_text(entry.explanation),
    )


def _numeric(entry: NumericEntry) -> NumericCheck:
    return NumericCheck(
        id=entry.id,
        prompt=read_text(entry.prompt),
        answer=entry.answer,
        tolerance=tolerance_of(entry),
        unit=entry.unit,
        units=tuple(entry.units.items()),
        wrong=tuple(
            WrongNumber(
                value=wrong.value,
                feedback=read_text(wrong.feedback),
                misconception=wrong.misconception,
            )
            for wrong in entry.wrong
        ),
        explanation=read_text(entry.explanation),
    )


def _gap(entry: GapEntry) -> Gap:
    return Gap(
        id=entry.id,
        answers=tuple(entry.answers),
        ignore_case=entry.ignore_case,
        wrong=tuple(
            WrongText(
                answers=frozenset(wrong.answers),
                feedback=read_text(wrong.feedback),
                misconception=wrong.misconception,
            )
            for wrong in entry.wrong
        ),
    )


def _fill(entry: FillEntry) -> FillCheck:
    gaps = {gap.id: _gap(gap) for gap in entry.gaps}
    cut = cut_at_gaps(entry.code.rstrip("\n"), frozenset(gaps))
    return FillCheck(
        id=entry.id,
        prompt=read_text(entry.prompt),
        pieces=tuple(gaps[piece] if is_gap else piece for piece, is_gap in cut),
        explanation=read_text(entry.explanation),
    )
