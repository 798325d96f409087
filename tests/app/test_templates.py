"""Every template fills in both languages, is sound HTML, and stays inside the content policy."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from app.grading import grade
from app.i18n import LANGUAGES, Language, load_translations
from app.lessons import Lesson, load_catalogue
from app.panels import run_view
from app.panels.contexts import (
    CellView,
    CheckView,
    CoursePage,
    ErrorPage,
    HomePage,
    LessonPage,
    RunPage,
    RunState,
    RunView,
)
from engine.events import Diagnosis, Note, RankEnd
from engine.trace import Trace, fold
from tests.app import panel_events as made
from tests.app.rendering import ROOT, TEMPLATES, Document, read, render

SOURCES = sorted(TEMPLATES.glob("*.html"))
CATALOGUE = load_catalogue(ROOT / "lessons")
HOSTILE = "</div><script>alert(1)</script></hx-partial><hx-partial hx-target='body'>"


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> Language:
    chosen: Language = request.param
    return chosen


def full_trace() -> Trace:
    trace = made.batch_norm_trace(synced=True)
    for rank in range(4):
        trace.add(made.gathered(rank))
        trace.add(made.output(rank, f"rank {rank}\n"))
    trace.add(made.gathered(0, seq=1, duration_ns=None))
    trace.add(made.output(0, HOSTILE, "stderr"))
    trace.add(Note(rank=0, seq=0, at_ns=1, code="x", message=HOSTILE, args={}))
    return trace


def run_of(language: Language, trace: Trace, record: made.Record | None = None) -> RunView:
    return run_view(
        record=record or made.Record(state="running"),
        trace=trace,
        translations=load_translations()[language],
    )


def ended(language: Language, cell_id: str = "compare") -> RunView:
    trace = full_trace()
    ends = [RankEnd(rank=rank, exit=0, cpu_s=0.2, peak_bytes=1 << 20) for rank in range(4)]
    found = Diagnosis(code="x", message=HOSTILE, line=1, rank=0, args={})
    outcome = made.outcome("error", ends)
    trace.add(replace(outcome, diagnosis=(found,)))
    return run_of(language, trace, made.Record(cell_id=cell_id))


def lesson_page(language: Language, lesson: Lesson) -> LessonPage:
    first = lesson.cells()[0]
    cells = {
        cell.id: CellView(
            lesson_id=lesson.id,
            cell=cell,
            code=cell.source,
            ranks=cell.ranks.default,
            is_draft=cell is first,
            revision=2,
            run=ended(language, cell.id) if cell is first else None,
        )
        for cell in lesson.cells()
    }
    given = {check.id: dict.fromkeys(check.fields, "on") for check in lesson.checks()}
    checks = {
        check.id: CheckView(
            lesson_id=lesson.id,
            check=check,
            given=given[check.id],
            verdict=grade(check, given[check.id], language),
        )
        for check in lesson.checks()
    }
    course = CATALOGUE.course(lesson.course_id)
    return LessonPage(lesson=lesson, course=course, cells=cells, checks=checks, place=None)


def assert_sound(document: Document) -> None:
    """What the content policy and assistive technology need of any markup."""
    ids = document.values("id")
    assert len(ids) == len(set(ids)), "two elements share an id"
    for name in ("for", "aria-labelledby", "aria-describedby", "data-help"):
        wanted = {one for value in document.values(name) for one in value.split()}
        assert wanted <= set(ids), f"{name} points to nothing"
    for element in document.elements:
        bad = [a for a in element.attributes if a == "style" or re.match(r"on|hx-on|hx-boost", a)]
        assert not bad, f"<{element.tag}> has {bad}"
        if element.tag == "script":
            assert element.attributes.get("src"), "an inline script"
        if element.tag == "button":
            assert element.attributes.get("type", "submit") in ("submit", "button")


def assert_headings_in_order(document: Document) -> None:
    levels = [int(e.tag[1]) for e in document.elements if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    for before, after in pairwise(levels):
        assert after <= before + 1, f"a heading skips from h{before} to h{after}"


# ------------------------------------------------------------------ sources
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.name))
def test_template_source_has_nothing_that_the_policy_forbids(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    forbidden = r"""(?x) \sstyle\s*= | \shx-on | \son[a-z]+\s*= | hx-boost | \bjs: | javascript: |
        hx-ext | hx-trigger="[^"]*\["""
    assert not re.search(forbidden, source)
    if path.name != "_text.html":
        assert "|safe" not in source.replace(" ", "")


# ------------------------------------------------------------------ pages
@pytest.mark.parametrize("lesson", CATALOGUE.lessons, ids=lambda lesson: str(lesson.id))
def test_lesson_page_is_sound(lesson: Lesson, language: Language) -> None:
    document = read(render(language, "lesson.html", page=lesson_page(language, lesson)))
    assert_sound(document)
    assert_headings_in_order(document)
    assert document.all("html")[0].attributes["lang"] == language
    ids = set(document.values("id"))
    assert {section.id for section in lesson.sections} <= ids
    assert {f"cell-{cell.id}" for cell in lesson.cells()} <= ids
    assert {f"check-{check.id}" for check in lesson.checks()} <= ids
    hrefs = [e.attributes["href"] for e in document.all("a")]
    assert f"/{language}/courses/{lesson.course_id}" in hrefs
    in_page = {href.removeprefix("#") for href in hrefs if href.startswith("#")}
    assert in_page <= ids


def test_other_pages_are_sound(language: Language) -> None:
    course = CATALOGUE.courses[0]
    pages = {
        "home.html": HomePage(courses=CATALOGUE.courses),
        "course.html": CoursePage(course=course),
        "run.html": RunPage(view=ended(language), source="print(1)\n", lesson_url="/en/lessons/x"),
        "error.html": ErrorPage(status_code=404, title="T", detail="D"),
    }
    for name, page in pages.items():
        document = read(render(language, name, page=page))
        assert_sound(document)
        assert_headings_in_order(document)


# ------------------------------------------------------------------ runs
def test_what_ranks_wrote_is_text_and_never_markup(language: Language) -> None:
    for name in ("_run.html", "_frame.html"):
        document = read(render(language, name, view=ended(language)))
        assert not document.all("script")
        assert "body" not in document.values("hx-target")
        assert document.text.count(HOSTILE) == 3


def test_code_between_backticks_of_a_diagnosis_is_code_and_still_text(language: Language) -> None:
    view = ended(language)
    (found,) = view.diagnosis
    found = replace(found, text="Write `x < y`, not `z.\nA lone ` too: `")
    html = render(language, "_run.html", view=replace(view, diagnosis=(found,), notes=()))
    assert "<li>Write <code>x &lt; y</code>, not <code>z.\nA lone </code> too: `</li>" in html


def test_a_live_run_connects_from_where_the_page_ends(language: Language) -> None:
    trace = full_trace()
    view = run_of(language, trace)
    root = read(render(language, "_run.html", view=view)).elements[0].attributes
    assert root["id"] == "run-compare"
    assert root["hx-sse:connect"] == f"/{language}/runs/r1/stream"
    assert root["hx-sse:close"] == "done"
    assert json.loads(root["hx-headers"]) == {"Last-Event-ID": str(view.num_events)}


def test_an_ended_run_connects_to_nothing(language: Language) -> None:
    document = read(render(language, "_run.html", view=ended(language)))
    assert not document.values("hx-sse:connect")
    assert json.loads(document.elements[0].attributes["data-marks"])[0]["line"] == 1


def test_every_target_of_a_frame_is_in_the_pane(language: Language) -> None:
    pane = read(render(language, "_run.html", view=ended(language)))
    frame = read(render(language, "_frame.html", view=ended(language)))
    scope = "[data-run-id='r1'] #"
    assert all(target.startswith(scope) for target in frame.values("hx-target"))
    targets = [target.removeprefix(scope) for target in frame.values("hx-target")]
    assert len(targets) == len(set(targets)) == 10
    assert set(targets) <= set(pane.values("id"))


@pytest.mark.parametrize("state", ["queued", "starting", "running"])
def test_every_state_of_a_live_run_can_be_stopped(state: RunState, language: Language) -> None:
    record = made.Record(state=state, position=2)
    document = read(render(language, "_run.html", view=run_of(language, fold([]), record)))
    assert f"/{language}/runs/r1/cancel" in document.values("action")


# ------------------------------------------------------------------ cells
def test_a_refused_cell_says_why_and_keeps_the_place_of_its_pane(language: Language) -> None:
    cell = CATALOGUE.lessons[0].cells()[0]
    view = CellView(
        lesson_id="x",
        cell=cell,
        code="\nprint(1)\n",
        ranks=4,
        is_draft=True,
        revision=1,
        run=None,
        error="Choose from 2 to 8 ranks.",
    )
    refused = read(render(language, "_cell_error.html", view=view))
    assert refused.elements[0].attributes["id"] == f"run-{cell.id}"
    assert "Choose from 2 to 8 ranks." in refused.text
    draft = read(render(language, "_draft_state.html", view=view))
    assert draft.elements[0].attributes["data-state"] == "refused"
    assert not draft.all("button")
    conflict = read(render(language, "_draft_state.html", view=replace(view, is_conflict=True)))
    assert conflict.elements[0].attributes["data-state"] == "conflict"
    assert len(conflict.all("button")) == 1
    whole = render(language, "_cell.html", view=view)
    assert_sound(read(whole))
    assert ">\n\nprint(1)\n</textarea>" in whole  # HTML drops the first newline


def test_ranks_offered_are_those_of_the_cell(language: Language) -> None:
    cell = CATALOGUE.lessons[0].cells()[0]
    page = lesson_page(language, CATALOGUE.lessons[0])
    document = read(render(language, "_cell.html", view=page.cells[cell.id]))
    offered = [int(e.attributes["value"]) for e in document.all("option")]
    assert offered == list(range(cell.ranks.min, cell.ranks.max + 1))
