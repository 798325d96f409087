"""The format as pydantic models: what each key means, and which values it takes.

May import pydantic and the engine's leaves. The JSON Schema for editors is made from these.
"""

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from engine.events import Status
from engine.program import MAX_RANKS, MAX_SIMULATED_RANKS

Id = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        max_length=80,
        description="A name that never changes: lower-case letters, digits and hyphens.",
    ),
]
Panel = Literal["statistics", "collectives", "output"]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text must not be blank: write it, or take the key out")
    return text


Words = Annotated[str, Field(min_length=1, max_length=8000), AfterValidator(_not_blank)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LocalizedEntry(_Entry):
    """One text per language; a missing one falls back to the other and is marked on the page."""

    ja: Annotated[Words | None, Field(description="Japanese")] = None
    en: Annotated[Words | None, Field(description="English")] = None

    @model_validator(mode="after")
    def _has_one(self) -> "LocalizedEntry":
        if self.ja is None and self.en is None:
            raise ValueError("write at least one of `ja` and `en`")
        return self


class SnippetEntry(_Entry):
    """A read-only code listing."""

    source: Annotated[Words, Field(description="Python, as it is shown.")]
    caption: LocalizedEntry | None = None


class RanksEntry(_Entry):
    """How many ranks a cell runs on."""

    default: Annotated[int, Field(ge=1, le=MAX_RANKS)] = 4
    min: Annotated[int, Field(ge=1, le=MAX_RANKS)] = 1
    max: Annotated[int, Field(ge=1, le=MAX_RANKS)] = MAX_RANKS

    @model_validator(mode="after")
    def _is_ordered(self) -> "RanksEntry":
        if not self.min <= self.default <= self.max:
            raise ValueError(
                f"`min` ({self.min}) <= `default` ({self.default}) <= `max` ({self.max}) must hold"
            )
        return self


class CellEntry(_Entry):
    """An editable program that runs on real ranks, or is simulated."""

    id: Id
    title: LocalizedEntry
    program: Annotated[
        str,
        Field(
            max_length=200,
            description="A .py file beside this one, like programs/plain_batch_norm.py.",
        ),
    ]
    ranks: RanksEntry = RanksEntry()
    simulated_ranks: (
        Annotated[
            int,
            Field(
                ge=1,
                le=MAX_SIMULATED_RANKS,
                description="Simulate one rank of so many instead of running real ones; the page "
                "says so. Such a cell has no `ranks`.",
            ),
        ]
        | None
    ) = None
    panels: Annotated[list[Panel], Field(min_length=1, description="In the order to show.")] = [
        "output"
    ]
    expect: Annotated[Status, Field(description="The outcome that the program must have.")] = "ok"

    @model_validator(mode="after")
    def _has_one_kind_of_ranks(self) -> "CellEntry":
        if self.simulated_ranks is not None and "ranks" in self.model_fields_set:
            raise ValueError("a cell has `ranks` or `simulated_ranks`, not both")
        return self


class ChoiceEntry(_Entry):
    """One answer that items can be matched to."""

    id: Id
    text: LocalizedEntry


class ItemEntry(_Entry):
    """One thing to match."""

    id: Id
    text: LocalizedEntry
    answer: Annotated[str, Field(description="The id of the right choice.")]
    explanation: Annotated[LocalizedEntry, Field(description="Shown when the match is right.")]
    feedback: Annotated[
        dict[str, LocalizedEntry], Field(description="Per wrong choice: what to say to it.")
    ] = {}


class MatchEntry(_Entry):
    """A matching question; its key never reaches a browser."""

    id: Id
    prompt: LocalizedEntry
    choices: Annotated[list[ChoiceEntry], Field(min_length=2)]
    items: Annotated[list[ItemEntry], Field(min_length=2)]


class BlockEntry(_Entry):
    """A part of a section: exactly one of these keys."""

    prose: Annotated[LocalizedEntry, Field(description="Markdown.")] | None = None
    snippet: SnippetEntry | None = None
    cell: CellEntry | None = None
    match: MatchEntry | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "BlockEntry":
        written = [entry for entry in (self.prose, self.snippet, self.cell, self.match) if entry]
        if len(self.model_fields_set) != 1 or len(written) != 1:
            raise ValueError("a block holds exactly one of `prose`, `snippet`, `cell`, `match`")
        return self


class SectionEntry(_Entry):
    """One idea."""

    id: Id
    title: LocalizedEntry
    blocks: Annotated[list[BlockEntry], Field(min_length=1)]


class FaqFileEntry(_Entry):
    """A question with its answer in Markdown."""

    id: Id
    question: LocalizedEntry
    answer: LocalizedEntry


class LessonFile(_Entry):
    """One lesson; the file is named after its id."""

    model_config = ConfigDict(extra="forbid", strict=True, title="Lesson")

    id: Id
    course: Annotated[str, Field(description="The id of the course that lists this lesson.")]
    title: LocalizedEntry
    subtitle: LocalizedEntry
    minutes: Annotated[int, Field(ge=1, le=600, description="Time to read it.")]
    objectives: Annotated[list[LocalizedEntry], Field(min_length=1)]
    sections: Annotated[list[SectionEntry], Field(min_length=1)]
    faq: list[FaqFileEntry] = []


class CourseLessonEntry(_Entry):
    """A lesson as its course lists it; it is announced until its file exists."""

    id: Id
    title: LocalizedEntry
    summary: LocalizedEntry


class CourseFile(_Entry):
    """One course; the file is named after its id."""

    id: Id
    title: LocalizedEntry
    summary: LocalizedEntry
    lessons: Annotated[list[CourseLessonEntry], Field(min_length=1)]


def lesson_json_schema() -> str:
    """The JSON Schema of lesson files, as editors want it."""
    schema = LessonFile.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
