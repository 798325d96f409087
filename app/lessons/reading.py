"""Reads a folder of courses and lessons. May import schema, i18n and the engine's leaves.

    FOLDER/courses/<course>.yaml    FOLDER/<lesson>.yaml    FOLDER/programs/<program>.py

All mistakes of all files are collected, so that an author sees them at once.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from app.lessons.model import (
    Block,
    Catalogue,
    Cell,
    Course,
    CourseLesson,
    FaqEntry,
    Lesson,
    Localized,
    MatchCheck,
    MatchChoice,
    MatchFeedback,
    MatchItem,
    Prose,
    RankRange,
    Section,
    Snippet,
)
from app.lessons.prose import ProseRenderer
from app.lessons.rules import check_course, check_lesson, read_program
from app.schema import (
    CourseFile,
    Document,
    LessonError,
    LessonFile,
    Problem,
    read_yaml,
    validate,
)
from app.schema.models import BlockEntry, CellEntry, LocalizedEntry, MatchEntry

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
    lessons: list[LessonFile] = []
    for path in _files(folder):
        document = _collect(path, path.name, problems)
        lesson = None if document is None else _validated(document, LessonFile, problems)
        if document is not None and lesson is not None:
            lessons.append(lesson)
            problems += check_lesson(document, lesson, path.stem, courses, folder)
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
    )


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
            title=_text(course.title),
            summary=_text(course.summary),
            lessons=tuple(
                CourseLesson(
                    id=entry.id,
                    number=number,
                    title=_text(entry.title),
                    summary=_text(entry.summary),
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
            title=_text(lesson.title),
            subtitle=_text(lesson.subtitle),
            minutes=lesson.minutes,
            objectives=tuple(_text(entry) for entry in lesson.objectives),
            sections=tuple(
                Section(
                    id=entry.id,
                    number=number,
                    title=_text(entry.title),
                    blocks=tuple(self.block(block) for block in entry.blocks),
                )
                for number, entry in enumerate(lesson.sections, 1)
            ),
            faq=tuple(
                FaqEntry(
                    id=entry.id,
                    question=_text(entry.question),
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
            return Prose(html=self.html(entry.prose), source=_text(entry.prose))
        if entry.snippet is not None:
            caption = entry.snippet.caption
            return Snippet(
                source=entry.snippet.source.rstrip("\n"),
                caption=None if caption is None else _text(caption),
            )
        if entry.cell is not None:
            return self.cell(entry.cell)
        assert entry.match is not None, "the schema demands exactly one key"
        return _match(entry.match)

    def cell(self, entry: CellEntry) -> Cell:
        source = read_program(self._folder, entry.program)
        assert isinstance(source, str), "checked before"
        return Cell(
            id=entry.id,
            title=_text(entry.title),
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


def _text(entry: LocalizedEntry) -> Localized:
    return Localized(ja=entry.ja, en=entry.en)


def _match(entry: MatchEntry) -> MatchCheck:
    return MatchCheck(
        id=entry.id,
        prompt=_text(entry.prompt),
        choices=tuple(MatchChoice(id=c.id, text=_text(c.text)) for c in entry.choices),
        items=tuple(
            MatchItem(
                id=item.id,
                text=_text(item.text),
                answer_choice_id=item.answer,
                explanation=_text(item.explanation),
                feedback=tuple(
                    MatchFeedback(choice_id=choice_id, text=_text(text))
                    for choice_id, text in item.feedback.items()
                ),
            )
            for item in entry.items
        ),
    )
