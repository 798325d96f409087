"""Courses and lessons as the rest of the app sees them.

May import i18n and the engine's leaves. Everything here is immutable and shared by all requests.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from app.lessons.checks import Check, Misconception
from app.lessons.texts import Localized
from engine.events import Status

Panel = Literal["statistics", "collectives", "output"]


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


_Found = TypeVar("_Found", bound=_HasId)


class NotFound(LookupError):
    """There is no such course, lesson, section, cell or check."""

    def __init__(self, kind: str, wanted: str) -> None:
        super().__init__(f"no {kind} {wanted!r}")
        self.kind = kind
        self.wanted = wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """One or more paragraphs; `html` is sanitised."""

    html: Localized
    source: Localized
    kind: Literal["prose"] = "prose"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A read-only code listing."""

    source: str
    caption: Localized | None
    kind: Literal["snippet"] = "snippet"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRange:
    """How many ranks a cell may run on."""

    default: int
    min: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An editable program that runs on real ranks, or is simulated."""

    id: str
    title: Localized
    source: str
    program_name: str
    ranks: RankRange
    panels: tuple[Panel, ...]
    expect_status: Status
    simulated_ranks: int | None = None
    """Ranks that the one process of a simulation stands for; then `ranks` is 1."""
    kind: Literal["cell"] = "cell"


Block = Prose | Snippet | Cell | Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One idea."""

    id: str
    number: int
    title: Localized
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaqEntry:
    """A question with its answer; `answer` is sanitised HTML."""

    id: str
    question: Localized
    answer: Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One page of sections."""

    id: str
    course_id: str
    number: int
    title: Localized
    subtitle: Localized
    minutes: int
    objectives: tuple[Localized, ...]
    sections: tuple[Section, ...]
    faq: tuple[FaqEntry, ...]

    def blocks(self) -> Iterator[tuple[Section, Block]]:
        """Every block with its section, in order."""
        for section in self.sections:
            for block in section.blocks:
                yield section, block

    def cells(self) -> tuple[Cell, ...]:
        return tuple(block for _, block in self.blocks() if isinstance(block, Cell))

    def checks(self) -> tuple[Check, ...]:
        return tuple(block for _, block in self.blocks() if isinstance(block, Check))

    def cell(self, cell_id: str) -> Cell:
        """Raises: NotFound."""
        return _find("cell", cell_id, self.cells())

    def check(self, check_id: str) -> Check:
        """Raises: NotFound."""
        return _find("check", check_id, self.checks())

    def section(self, section_id: str) -> Section:
        """Raises: NotFound."""
        return _find("section", section_id, self.sections)

    def section_of(self, block_id: str) -> Section:
        """The section that holds a cell or check. Raises: NotFound."""
        for section, block in self.blocks():
            if isinstance(block, Cell | Check) and block.id == block_id:
                return section
        raise NotFound("block", block_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseLesson:
    """A lesson as its course lists it; not every one is written yet."""

    id: str
    number: int
    title: Localized
    summary: Localized
    is_available: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A path through lessons."""

    id: str
    title: Localized
    summary: Localized
    lessons: tuple[CourseLesson, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All courses and lessons of this site."""

    courses: tuple[Course, ...]
    lessons: tuple[Lesson, ...]
    misconceptions: tuple[Misconception, ...] = ()

    def course(self, course_id: str) -> Course:
        """Raises: NotFound."""
        return _find("course", course_id, self.courses)

    def lesson(self, lesson_id: str) -> Lesson:
        """Raises: NotFound."""
        return _find("lesson", lesson_id, self.lessons)


def _find(kind: str, wanted: str, among: Sequence[_Found]) -> _Found:
    for candidate in among:
        if candidate.id == wanted:
            return candidate
    raise NotFound(kind, wanted)
