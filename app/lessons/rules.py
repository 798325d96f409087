"""Rules between the parts of a lesson, which no single key can state.

May import schema and the engine's leaves. Each returns problems at their positions.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from app.lessons.compiling import why_not_python
from app.lessons.rules_basics import Named, check_unique, ids_of
from app.lessons.rules_checks import check_check
from app.schema import CourseFile, Document, LessonFile, Problem
from app.schema import Path as KeyPath
from engine.program import MAX_SOURCE_BYTES


def check_course(document: Document, course: CourseFile, stem: str) -> Iterator[Problem]:
    """Ids of a course file."""
    if course.id != stem:
        yield document.problem(("id",), f"the file must be named {course.id}.yaml")
    yield from check_unique(document, ids_of((), "lessons", course.lessons), "lesson")


def check_lesson(
    document: Document,
    lesson: LessonFile,
    stem: str,
    courses: Mapping[str, CourseFile | None],
    misconceptions: frozenset[str] | None,
    folder: Path,
) -> Iterator[Problem]:
    """Ids, references, checks and programs of a lesson file.

    `courses` has None for a broken file, and `misconceptions` is None where theirs is broken.
    """
    if lesson.id != stem:
        yield document.problem(("id",), f"the file must be named {lesson.id}.yaml")
    course = courses.get(lesson.course)
    if lesson.course not in courses:
        known = ", ".join(sorted(courses)) or "none"
        yield document.problem(("course",), f"there is no such course; there are: {known}")
    elif (
        course is not None
        and lesson.id == stem
        and lesson.id not in [entry.id for entry in course.lessons]
    ):
        message = f"the course `{course.id}` does not list this lesson: add `- id: {lesson.id}`"
        yield document.problem(("course",), message)
    yield from check_unique(document, ids_of((), "sections", lesson.sections), "section")
    yield from check_unique(document, ids_of((), "faq", lesson.faq), "question")
    yield from _check_blocks(document, lesson, misconceptions, folder)


def _check_blocks(
    document: Document, lesson: LessonFile, misconceptions: frozenset[str] | None, folder: Path
) -> Iterator[Problem]:
    named: list[Named] = []
    for section_number, section in enumerate(lesson.sections):
        for block_number, block in enumerate(section.blocks):
            path: KeyPath = ("sections", section_number, "blocks", block_number)
            if block.cell is not None:
                named.append((block.cell.id, (*path, "cell", "id")))
                program = read_program(folder, block.cell.program)
                if isinstance(program, ProgramProblem):
                    yield document.problem((*path, "cell", "program"), program.message)
            if block.check is not None:
                named.append((block.check.id, (*path, block.kind, "id")))
                yield from check_check(document, block.check, (*path, block.kind), misconceptions)
    yield from check_unique(document, named, "cell or check")


class ProgramProblem:
    """Why a program file cannot be used."""

    def __init__(self, message: str) -> None:
        self.message = message


def read_program(folder: Path, name: str) -> str | ProgramProblem:
    """The source of a program beside a lesson; it must lie in the folder and compile."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or "\\" in name or "\0" in name:
        return ProgramProblem("`program` must be a path below the lesson's folder, without ..")
    if relative.suffix != ".py":
        return ProgramProblem("`program` must be a .py file")
    path = folder / relative
    try:
        if not path.is_file():
            return ProgramProblem(f"there is no file {name} beside this one")
        if not path.resolve().is_relative_to(folder.resolve()):
            return ProgramProblem("`program` leads out of the lesson's folder")
        with path.open("rb") as file:
            raw = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        return ProgramProblem(f"{name} cannot be read: {error.strerror}")
    if len(raw) > MAX_SOURCE_BYTES:
        return ProgramProblem(f"{name} has more than {MAX_SOURCE_BYTES // 1024} KiB")
    try:
        source = raw.decode("utf-8")
    except UnicodeDecodeError:
        return ProgramProblem(f"{name} is not UTF-8 text")
    wrong = why_not_python(source, name)
    if wrong is None:
        return source
    where = " cannot be compiled" if wrong.line is None else f", line {wrong.line}"
    return ProgramProblem(f"{name}{where}: {wrong.message}")
