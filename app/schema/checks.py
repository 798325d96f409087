"""The checks of the format: questions whose keys never reach a browser. May import basics.

Each has an id, a prompt, its answer, and an explanation that is shown when it was answered rightly.
"""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from app.schema.basics import Entry, Id, LocalizedEntry, Words, not_blank

MAX_PARTS = 12
"""Options, lines or gaps of one check."""
Answer = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(not_blank)]
Unit = Annotated[str, Field(min_length=1, max_length=20), AfterValidator(not_blank)]
Number = Annotated[float, Field(allow_inf_nan=False)]
MisconceptionId = Annotated[
    Id | None,
    Field(description="What this wrong answer shows; an id of misconceptions.yaml or a diagnosis."),
]
Explanation = Annotated[LocalizedEntry, Field(description="Shown when the answer is right.")]
Feedback = Annotated[LocalizedEntry, Field(description="What to say to this wrong answer.")]


class ChoiceEntry(Entry):
    """One answer that items can be matched to."""

    id: Id
    text: LocalizedEntry


class ItemEntry(Entry):
    """One thing to match."""

    id: Id
    text: LocalizedEntry
    answer: Annotated[str, Field(description="The id of the right choice.")]
    explanation: Annotated[LocalizedEntry, Field(description="Shown when the match is right.")]
    feedback: Annotated[
        dict[str, LocalizedEntry], Field(description="Per wrong choice: what to say to it.")
    ] = Field(default_factory=dict)


class MatchEntry(Entry):
    """A matching question; its key never reaches a browser."""

    id: Id
    prompt: LocalizedEntry
    choices: Annotated[list[ChoiceEntry], Field(min_length=2)]
    items: Annotated[list[ItemEntry], Field(min_length=2)]


class OptionEntry(Entry):
    """One answer to choose."""

    id: Id
    text: LocalizedEntry
    feedback: (
        Annotated[LocalizedEntry, Field(description="What to say to whoever is wrong about it.")]
        | None
    ) = None
    misconception: MisconceptionId = None


Options = Annotated[list[OptionEntry], Field(min_length=2, max_length=MAX_PARTS)]


class SingleEntry(Entry):
    """A question with one right option."""

    id: Id
    prompt: LocalizedEntry
    options: Options
    answer: Annotated[str, Field(description="The id of the right option.")]
    explanation: Explanation


class MultipleEntry(Entry):
    """A question with any number of right options."""

    id: Id
    prompt: LocalizedEntry
    options: Options
    answers: Annotated[list[str], Field(min_length=1, description="The ids of the right options.")]
    explanation: Explanation


class LineEntry(Entry):
    """A line of code to put in its place."""

    id: Id
    code: Words
    after: Annotated[
        list[str], Field(description="Ids of the lines that must stand somewhere above this one.")
    ] = Field(default_factory=list)


class DistractorEntry(Entry):
    """A line of code that does not belong into the program."""

    id: Id
    code: Words
    feedback: Feedback
    misconception: MisconceptionId = None


class OrderEntry(Entry):
    """Lines of code in a wrong order; every order that `after` allows is right."""

    id: Id
    prompt: LocalizedEntry
    lines: Annotated[list[LineEntry], Field(min_length=2, max_length=MAX_PARTS)]
    distractors: Annotated[list[DistractorEntry], Field(max_length=MAX_PARTS)] = Field(
        default_factory=list
    )
    explanation: Explanation


class ToleranceEntry(Entry):
    """How far from the number an answer may lie: exactly one of these keys."""

    example: ClassVar[str | None] = "{relative: 0.01}"

    absolute: Annotated[Number, Field(ge=0, description="In the unit of the answer.")] | None = None
    relative: Annotated[Number, Field(ge=0, le=1, description="0.01 is one per cent.")] | None = (
        None
    )

    @model_validator(mode="after")
    def _is_one(self) -> "ToleranceEntry":
        if (self.absolute is None) == (self.relative is None):
            raise ValueError("write exactly one of `absolute` and `relative`")
        return self


def _no_tolerance() -> ToleranceEntry:
    return ToleranceEntry(relative=1e-9)


class WrongNumberEntry(Entry):
    """A wrong number that learners come to, in the unit of the answer."""

    value: Number
    feedback: Feedback
    misconception: MisconceptionId = None


class NumericEntry(Entry):
    """A question for a number."""

    id: Id
    prompt: LocalizedEntry
    answer: Number
    tolerance: Annotated[
        ToleranceEntry, Field(description="Without it only the number itself is right.")
    ] = Field(default_factory=_no_tolerance)
    unit: Annotated[Unit, Field(description="What `answer` is counted in.")] | None = None
    units: Annotated[
        dict[Unit, Annotated[Number, Field(gt=0)]],
        Field(description="Further units that a learner may choose, each in units of `unit`."),
    ] = Field(default_factory=dict)
    wrong: Annotated[list[WrongNumberEntry], Field(max_length=MAX_PARTS)] = Field(
        default_factory=list
    )
    explanation: Explanation


class WrongTextEntry(Entry):
    """Wrong texts that learners write."""

    answers: Annotated[list[Answer], Field(min_length=1)]
    feedback: Feedback
    misconception: MisconceptionId = None


class GapEntry(Entry):
    """A gap in the code; blanks around an answer do not count."""

    id: Id
    answers: Annotated[list[Answer], Field(min_length=1, description="Every text that is right.")]
    ignore_case: bool = False
    wrong: Annotated[list[WrongTextEntry], Field(max_length=MAX_PARTS)] = Field(
        default_factory=list
    )


class FillEntry(Entry):
    """Code with gaps to fill in."""

    id: Id
    prompt: LocalizedEntry
    code: Annotated[Words, Field(description="Python, with {{gap-id}} where a gap is.")]
    gaps: Annotated[list[GapEntry], Field(min_length=1, max_length=MAX_PARTS)]
    explanation: Explanation


CheckEntry = MatchEntry | SingleEntry | MultipleEntry | OrderEntry | NumericEntry | FillEntry


class MisconceptionEntry(Entry):
    """Something that learners wrongly believe; several checks may find it."""

    id: Id
    title: Annotated[LocalizedEntry, Field(description="The belief, in a sentence.")]


class MisconceptionsFile(Entry):
    """The catalogue of a folder of lessons, `misconceptions.yaml`."""

    misconceptions: Annotated[list[MisconceptionEntry], Field(min_length=1)]
