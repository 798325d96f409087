"""The format as pydantic models: what each key means, and which values it takes.

May import pydantic and the engine's leaves. The JSON Schema for editors is made from these.
"""

import json
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from app.schema.basics import Entry, Id, LocalizedEntry, Words
from app.schema.checks import (
    CheckEntry,
    FillEntry,
    MatchEntry,
    MultipleEntry,
    NumericEntry,
    OrderEntry,
    SingleEntry,
)
from engine.events import Status
from engine.program import MAX_RANKS, MAX_SIMULATED_RANKS

Panel = Literal["statistics", "collectives", "output"]


class SnippetEntry(Entry):
    """A read-only code listing."""

    source: Annotated[Words, Field(description="Python, as it is shown.")]
    caption: LocalizedEntry | None = None


class RanksEntry(Entry):
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


def _output_only() -> list[Panel]:
    return ["output"]


class CellEntry(Entry):
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
    panels: Annotated[list[Panel], Field(min_length=1, description="In the order to show.")] = (
        Field(default_factory=_output_only)
    )
    expect: Annotated[Status, Field(description="The outcome that the program must have.")] = "ok"

    @model_validator(mode="after")
    def _has_one_kind_of_ranks(self) -> "CellEntry":
        if self.simulated_ranks is not None and "ranks" in self.model_fields_set:
            raise ValueError("a cell has `ranks` or `simulated_ranks`, not both")
        return self


class BlockEntry(Entry):
    """A part of a section: exactly one of these keys."""

    prose: Annotated[LocalizedEntry, Field(description="Markdown.")] | None = None
    snippet: SnippetEntry | None = None
    cell: CellEntry | None = None
    single: SingleEntry | None = None
    multiple: MultipleEntry | None = None
    match: MatchEntry | None = None
    order: OrderEntry | None = None
    numeric: NumericEntry | None = None
    fill: FillEntry | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "BlockEntry":
        written = [name for name in self.model_fields_set if getattr(self, name) is not None]
        if len(self.model_fields_set) != 1 or len(written) != 1:
            known = ", ".join(f"`{name}`" for name in type(self).model_fields)
            raise ValueError(f"a block holds exactly one of {known}")
        return self

    @property
    def check(self) -> CheckEntry | None:
        """The check that this block is, of whatever kind."""
        found = (self.single, self.multiple, self.match, self.order, self.numeric, self.fill)
        return next((entry for entry in found if entry is not None), None)

    @property
    def kind(self) -> str:
        """The key that was written."""
        (name,) = self.model_fields_set
        return name


class SectionEntry(Entry):
    """One idea."""

    id: Id
    title: LocalizedEntry
    blocks: Annotated[list[BlockEntry], Field(min_length=1)]


class FaqFileEntry(Entry):
    """A question with its answer in Markdown."""

    id: Id
    question: LocalizedEntry
    answer: LocalizedEntry


class LessonFile(Entry):
    """One lesson; the file is named after its id."""

    model_config = ConfigDict(extra="forbid", strict=True, title="Lesson")

    id: Id
    course: Annotated[str, Field(description="The id of the course that lists this lesson.")]
    title: LocalizedEntry
    subtitle: LocalizedEntry
    minutes: Annotated[int, Field(ge=1, le=600, description="Time to read it.")]
    objectives: Annotated[list[LocalizedEntry], Field(min_length=1)]
    sections: Annotated[list[SectionEntry], Field(min_length=1)]
    faq: list[FaqFileEntry] = Field(default_factory=list)


class CourseLessonEntry(Entry):
    """A lesson as its course lists it; it is announced until its file exists."""

    id: Id
    title: LocalizedEntry
    summary: LocalizedEntry


class CourseFile(Entry):
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
