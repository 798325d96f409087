"""Rules between the parts of a lesson, which no single key can state.

May import schema. Each returns problems at their positions.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from app.schema import CourseFile, Document, LessonFile, Problem
from app.schema import Path as KeyPath
from app.schema.models import MatchEntry
from engine.program import MAX_SOURCE_BYTES

_Named = tuple[str, KeyPath]


def check_course(document: Document, course: CourseFile, stem: str) -> Iterator[Problem]:
    """Ids of a course file."""
    if course.id != stem:
        yield document.problem(("id",), f"the file must be named {course.id}.yaml")
    paths: list[_Named] = [
        (entry.id, ("lessons", number, "id")) for number, entry in enumerate(course.lessons)
    ]
    yield from _unique(document, paths, "lesson")


def check_lesson(
    document: Document,
    lesson: LessonFile,
    stem: str,
    courses: Mapping[str, CourseFile | None],
    folder: Path,
) -> Iterator[Problem]:
    """Ids, references and programs of a lesson file; `courses` has None for a broken file."""
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
    sections: list[_Named] = [
        (section.id, ("sections", number, "id")) for number, section in enumerate(lesson.sections)
    ]
    yield from _unique(document, sections, "section")
    questions: list[_Named] = [
        (entry.id, ("faq", number, "id")) for number, entry in enumerate(lesson.faq)
    ]
    yield from _unique(document, questions, "question")
    yield from _check_blocks(document, lesson, folder)


def _check_blocks(document: Document, lesson: LessonFile, folder: Path) -> Iterator[Problem]:
    named: list[_Named] = []
    for section_number, section in enumerate(lesson.sections):
        for block_number, block in enumerate(section.blocks):
            path: KeyPath = ("sections", section_number, "blocks", block_number)
            if block.cell is not None:
                named.append((block.cell.id, (*path, "cell", "id")))
                program = read_program(folder, block.cell.program)
                if isinstance(program, ProgramProblem):
                    yield document.problem((*path, "cell", "program"), program.message)
            if block.match is not None:
                named.append((block.match.id, (*path, "match", "id")))
                yield from _check_match(document, block.match, (*path, "match"))
    yield from _unique(document, named, "cell or check")


def _check_match(document: Document, match: MatchEntry, path: KeyPath) -> Iterator[Problem]:
    choices = [choice.id for choice in match.choices]
    known = ", ".join(choices)
    yield from _unique(
        document, [(c, (*path, "choices", n, "id")) for n, c in enumerate(choices)], "choice"
    )
    items: list[_Named] = [
        (item.id, (*path, "items", number, "id")) for number, item in enumerate(match.items)
    ]
    yield from _unique(document, items, "item")
    for number, item in enumerate(match.items):
        here = (*path, "items", number)
        if item.answer not in choices:
            message = f"`answer` must be one of the choices: {known}"
            yield document.problem((*here, "answer"), message)
        for choice_id in item.feedback:
            where = (*here, "feedback", choice_id)
            if choice_id not in choices:
                yield document.problem(where, f"there is no choice `{choice_id}`", at_key=True)
            elif choice_id == item.answer:
                message = "this is the right choice: what to say belongs into `explanation`"
                yield document.problem(where, message, at_key=True)


def _unique(document: Document, named: Iterable[_Named], kind: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for name, path in named:
        if name in seen:
            yield document.problem(path, f"the {kind} id `{name}` is used twice")
        seen.add(name)


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
    return _uncompilable(source, name) or source


def _uncompilable(source: str, name: str) -> ProgramProblem | None:
    try:
        compile(source, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return ProgramProblem(f"{name}, line {error.lineno or 1}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return ProgramProblem(f"{name} cannot be compiled: {error}")
    return None
