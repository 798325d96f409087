"""The example lesson of docs/lesson-format.md is right, and its mistakes are reported as shown."""

import re
from pathlib import Path
from textwrap import indent

import pytest

from app.lessons import check_folder, load_catalogue

REFERENCE = Path(__file__).parents[2] / "docs" / "lesson-format.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    text = REFERENCE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lesson, *_, course = blocks("yaml")
    (program,) = blocks("python")
    (tmp_path / "courses").mkdir()
    (tmp_path / "programs").mkdir()
    (tmp_path / "my-lesson.yaml").write_text(lesson, encoding="utf-8")
    (tmp_path / "courses" / "my-course.yaml").write_text(course, encoding="utf-8")
    (tmp_path / "programs" / "hello_ranks.py").write_text(program, encoding="utf-8")
    return tmp_path


@pytest.fixture
def folder_with_checks(folder: Path) -> Path:
    """The example lesson with each check of the reference behind its last block."""
    _, *checks, misconceptions, _ = blocks("yaml")
    lesson = folder / "my-lesson.yaml"
    before, faq, after = lesson.read_text(encoding="utf-8").partition("\nfaq:")
    more = indent("".join(checks), " " * 6)
    lesson.write_text(f"{before}{more}{faq}{after}", encoding="utf-8")
    (folder / "misconceptions.yaml").write_text(misconceptions, encoding="utf-8")
    return folder


def test_example_of_the_reference_loads(folder: Path) -> None:
    assert check_folder(folder) == []
    catalogue = load_catalogue(folder)
    assert catalogue.lesson("my-lesson").cell("hello-ranks").program_name == "hello_ranks.py"
    availability = [entry.is_available for entry in catalogue.course("my-course").lessons]
    assert availability == [True, False]


def test_reference_has_an_example_of_each_kind_of_check(folder_with_checks: Path) -> None:
    assert check_folder(folder_with_checks) == []
    catalogue = load_catalogue(folder_with_checks)
    kinds = [check.kind for check in catalogue.lesson("my-lesson").checks()]
    assert kinds == ["match", "single", "multiple", "order", "numeric", "fill"]
    assert len(catalogue.misconceptions) == 4


def test_every_text_of_the_examples_is_in_both_languages() -> None:
    for block in blocks("yaml"):
        assert block.count("ja:") == block.count("en:")


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
    assert_is_shown(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("answer: process", "answer: proces"),
        ("answers: [barrier, all-reduce]", "answers: [barrier, all-reduced]"),
        ("misconception: rank-is-machine", "misconception: rank-is-a-machine"),
        ("after: [clear, forward]", "after: [clear, backward]"),
        ("after: [clear, forward]", "after: [forward]"),
        ("tolerance: {absolute: 0.5}", "tolerance: 0.5"),
        ("value: 1024", "value: 256.25"),
        ("- id: call", "- id: cal"),
        ("[reduce, gather]", "[reduce, all_reduce]"),
    ],
)
def test_mistake_in_a_check_is_reported_in_the_words_of_the_reference(
    folder_with_checks: Path, old: str, new: str
) -> None:
    lesson = folder_with_checks / "my-lesson.yaml"
    text = lesson.read_text(encoding="utf-8")
    assert text.count(old) == 1
    lesson.write_text(text.replace(old, new), encoding="utf-8")
    assert_is_shown(folder_with_checks)


def assert_is_shown(folder: Path) -> None:
    """The one mistake in the folder stands in the reference, word for word."""
    (problem,) = check_folder(folder)
    shown = [
        line for line in REFERENCE.read_text(encoding="utf-8").splitlines() if ".yaml:" in line
    ]
    assert str(problem) in shown
