"""Cells of lessons that are marked as simulated: the format, the program and the page."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.i18n import Language
from app.lessons import Cell, check_folder, load_catalogue
from app.routes.forms import program_of
from app.store import Draft
from tests.app.rendering import read, render
from tests.app.test_templates import CATALOGUE, lesson_page
from tests.lessons.test_malformed import COURSE, LESSON

OWN_RANKS = "ranks: {default: 4, min: 2, max: 8}"
MARKED = LESSON.replace(OWN_RANKS, "simulated_ranks: 1024")


def folder_with(path: Path, lesson: str) -> Path:
    (path / "courses").mkdir()
    (path / "programs").mkdir()
    (path / "programs" / "a.py").write_text("print(1)\n")
    (path / "courses" / "course.yaml").write_text(COURSE, encoding="utf-8")
    (path / "lesson.yaml").write_text(lesson, encoding="utf-8")
    return path


def test_marked_cell_runs_one_process_for_many_ranks(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, MARKED)
    assert check_folder(folder) == []
    cell = load_catalogue(folder).lesson("lesson").cell("cell")
    assert isinstance(cell, Cell)
    program = program_of(Draft(code="print(1)", ranks=1, revision=0), cell)
    assert (program.world_size, program.simulated_ranks) == (1, 1024)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (f"{OWN_RANKS}\n          simulated_ranks: 8", "not both"),
        ("simulated_ranks: 4097", "4096 or less"),
        ("simulated_ranks: 0", "1 or more"),
    ],
)
def test_mark_that_cannot_be_is_one_clear_mistake(tmp_path: Path, key: str, said: str) -> None:
    (problem,) = check_folder(folder_with(tmp_path, LESSON.replace(OWN_RANKS, key)))
    assert said in str(problem)


@pytest.mark.parametrize(
    ("language", "label"), [("en", "one rank of 1024"), ("ja", "1024 ランクのうちの 1 つ")]
)
def test_page_labels_a_simulated_cell_instead_of_offering_ranks(
    language: Language, label: str
) -> None:
    cell = CATALOGUE.lessons[0].cells()[0]
    view = lesson_page(language, CATALOGUE.lessons[0]).cells[cell.id]
    marked = replace(view, cell=replace(cell, simulated_ranks=1024))
    document = read(render(language, "_cell.html", view=marked))
    assert label in document.text
    assert document.all("option") == []
    (ranks,) = [e for e in document.all("input") if e.attributes.get("name") == "ranks"]
    assert ranks.attributes["value"] == "1"
