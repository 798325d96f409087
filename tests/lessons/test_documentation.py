"""The example lesson of docs/lesson-format.md is right, and its mistakes are reported as shown."""

import re
from pathlib import Path

import pytest

from app.lessons import check_folder, load_catalogue

REFERENCE = Path(__file__).parents[2] / "docs" / "lesson-format.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    text = REFERENCE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lesson, course = blocks("yaml")
    (program,) = blocks("python")
    (tmp_path / "courses").mkdir()
    (tmp_path / "programs").mkdir()
    (tmp_path / "my-lesson.yaml").write_text(lesson, encoding="utf-8")
    (tmp_path / "courses" / "my-course.yaml").write_text(course, encoding="utf-8")
    (tmp_path / "programs" / "hello_ranks.py").write_text(program, encoding="utf-8")
    return tmp_path


def test_example_of_the_reference_loads(folder: Path) -> None:
    assert check_folder(folder) == []
    catalogue = load_catalogue(folder)
    assert catalogue.lesson("my-lesson").cell("hello-ranks").program_name == "hello_ranks.py"
    availability = [entry.is_available for entry in catalogue.course("my-course").lessons]
    assert availability == [True, False]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("minutes: 5", "minuets: 1\nminutes: 5"),
        ("minutes: 5\n", ""),
        ("programs/hello_ranks.py", "programs/helo_ranks.py"),
        ("answer: number", "answer: letter"),
        ("  - {ja: ランクとは", "\t- {ja: ランクとは"),
    ],
)
def test_mistake_is_reported_in_the_words_of_the_reference(
    folder: Path, old: str, new: str
) -> None:
    lesson = folder / "my-lesson.yaml"
    text = lesson.read_text(encoding="utf-8")
    assert old in text
    lesson.write_text(text.replace(old, new, 1), encoding="utf-8")
    (problem,) = check_folder(folder)
    shown = [
        line for line in REFERENCE.read_text(encoding="utf-8").splitlines() if ".yaml:" in line
    ]
    assert str(problem) in shown
