"""Reads a folder of courses and lessons. May import schema, i18n and the engine's leaves.

    FOLDER/courses/<course>.yaml    FOLDER/<lesson>.yaml    FOLDER/programs/<program>.py
    FOLDER/misconceptions.yaml

All mistakes of all files are collected, so that an author sees them at once.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from app.lessons.checks import Misconception
from app.lessons.model import (
    Block,
    Catalogue,
    Cell,
    Course,
    CourseLesson,
    FaqEntry,
    Lesson,
    Prose,
    RankRange,
    Section,
    Snippet,
)
from app.lessons.prose import ProseRenderer
from app.lessons.reading_checks import read_check, read_misconceptions, read_text
from app.lessons.rules import check_course, check_lesson, read_program
from app.lessons.rules_checks import check_misconceptions
from app.lessons.texts import Localized
from app.schema import (
    CourseFile,
    Document,
    LessonError,
    LessonFile,
    MisconceptionsFile,
    Problem,
    read_yaml,
    validate,
)
from app.schema.basics import LocalizedEntry
from app.schema.models import BlockEntry, CellEntry

MISCONCEPTIONS = "misconceptions.yaml"

_Model = TypeVar("_Model", bound=BaseModel)


def check_folder(folder: Path) -> list[Problem]:
    """Every mistake in a folder of lessons; empty when it can be served."""
    try:
        load_catalogue(folder)
    except LessonError as error:
        return list(error.problems)
    return []


def load_catalogue(folder: Path) -> Catalogue:
    """Read every course and lesson below a folder. Raises: LessonError with every mistake."""
    problems = _misnamed(folder)
    courses: dict[str, CourseFile | None] = {}
    for path in _files(folder / "courses"):
        document = _collect(path, f"courses/{path.name}", problems)
        course = None if document is None else _validated(document, CourseFile, problems)
        courses[path.stem] = course
        if document is not None and course is not None:
            problems += check_course(document, course, path.stem)
    misconceptions = _misconceptions(folder, problems)
    known = None if misconceptions is None else frozenset(m.id for m in misconceptions)
    lessons: list[LessonFile] = []
    for path in _files(folder):
        if path.name == MISCONCEPTIONS:
            continue
        document = _collect(path, path.name, problems)
        lesson = None if document is None else _validated(document, LessonFile, problems)
        if document is not None and lesson is not None:
            lessons.append(lesson)
            problems += check_lesson(document, lesson, path.stem, courses, known, folder)
    if not courses and not problems:
        message = "there is no course here: write courses/my-course.yaml"
        problems.append(Problem(file=str(folder), line=1, column=1, message=message))
    if problems:
        raise LessonError(tuple(sorted(set(problems))))
    reader = _Reader(folder)
    available = {lesson.id for lesson in lessons}
    right = {stem: course for stem, course in courses.items() if course is not None}
    return Catalogue(
        courses=tuple(reader.course(course, available) for course in right.values()),
        lessons=tuple(reader.lesson(lesson, right[lesson.course]) for lesson in lessons),
        misconceptions=misconceptions or (),
    )


def _misconceptions(folder: Path, problems: list[Problem]) -> tuple[Misconception, ...] | None:
    """The catalogue of a folder, empty where it has none; None for a broken file."""
    path = folder / MISCONCEPTIONS
    if not path.is_file():
        return ()
    document = _collect(path, path.name, problems)
    file = None if document is None else _validated(document, MisconceptionsFile, problems)
    if document is None or file is None:
        return None
    problems += check_misconceptions(document, file)
    return read_misconceptions(file)


def _misnamed(folder: Path) -> list[Problem]:
    """Files that look like lessons and would be passed over."""
    return [
        Problem(file=str(path.relative_to(folder)), line=1, column=1, message="name it .yaml")
        for path in sorted((*folder.glob("*.yml"), *folder.glob("courses/*.yml")))
    ]


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*.yaml") if p.is_file())


def _collect(path: Path, name: str, problems: list[Problem]) -> Document | None:
    try:
        return read_yaml(path, name)
    except LessonError as error:
        problems += error.problems
        return None


def _validated(document: Document, model: type[_Model], problems: list[Problem]) -> _Model | None:
    try:
        return validate(document, model)
    except LessonError as error:
        problems += error.problems
        return None


class _Reader:
    """Turns valid files into the model."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prose = ProseRenderer()

    def course(self, course: CourseFile, available: Iterable[str]) -> Course:
        return Course(
            id=course.id,
            title=read_text(course.title),
            summary=read_text(course.summary),
            lessons=tuple(
                CourseLesson(
                    id=entry.id,
                    number=number,
                    title=read_text(entry.title),
                    summary=read_text(entry.summary),
                    is_available=entry.id in available,
                )
                for number, entry in enumerate(course.lessons, 1)
            ),
        )

    def lesson(self, lesson: LessonFile, course: CourseFile) -> Lesson:
        return Lesson(
            id=lesson.id,
            course_id=lesson.course,
            number=1 + [entry.id for entry in course.lessons].index(lesson.id),
            title=read_text(lesson.title),
            subtitle=read_text(lesson.subtitle),
            minutes=lesson.minutes,
            objectives=tuple(read_text(entry) for entry in lesson.objectives),
            sections=tuple(
                Section(
                    id=entry.id,
                    number=number,
                    title=read_text(entry.title),
                    blocks=tuple(self.block(block) for block in entry.blocks),
                )
                for number, entry in enumerate(lesson.sections, 1)
            ),
            faq=tuple(
                FaqEntry(
                    id=entry.id,
                    question=read_text(entry.question),
                    answer=self.html(entry.answer),
                )
                for entry in lesson.faq
            ),
        )

    def html(self, entry: LocalizedEntry) -> Localized:
        return Localized(
            ja=None if entry.ja is None else self._prose.render(entry.ja),
            en=None if entry.en is None else self._prose.render(entry.en),
        )

    def block(self, entry: BlockEntry) -> Block:
        if entry.prose is not None:
            return Prose(html=self.html(entry.prose), source=read_text(entry.prose))
        if entry.snippet is not None:
            caption = entry.snippet.caption
            return Snippet(
                source=entry.snippet.source.rstrip("\n"),
                caption=None if caption is None else read_text(caption),
            )
        if entry.cell is not None:
            return self.cell(entry.cell)
        check = entry.check
        assert check is not None, "the schema demands exactly one key"
        return read_check(check)

    def cell(self, entry: CellEntry) -> Cell:
        source = read_program(self._folder, entry.program)
        assert isinstance(source, str), "checked before"
        return Cell(
            id=entry.id,
            title=read_text(entry.title),
            source=source,
            program_name=Path(entry.program).name,
            ranks=_ranks(entry),
            panels=tuple(entry.panels),
            expect_status=entry.expect,
            simulated_ranks=entry.simulated_ranks,
        )


def _ranks(entry: CellEntry) -> RankRange:
    if entry.simulated_ranks is not None:
        return RankRange(default=1, min=1, max=1)
    return RankRange(default=entry.ranks.default, min=entry.ranks.min, max=entry.ranks.max)
