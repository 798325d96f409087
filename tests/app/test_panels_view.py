"""A whole run as its pane draws it: notes and diagnoses in the page's language, marks, ends."""

import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from app.i18n import Translations, load_translations
from app.panels import marks_json, num_events, run_view, trace_json
from app.panels.marks import utf16_column
from engine.events import Diagnosis, Event, Failure, Frame, Note, RankEnd
from engine.facts import Args
from engine.trace import Trace, fold
from tests.app import panel_events as made

JAPANESE_LINE = 'message = "😀 学習" + 1\n'
"""The failing expression starts after an emoji, which is two UTF-16 code units."""
NO_ARGS: Args = MappingProxyType({})
WITH_IDS: Args = MappingProxyType({"device_ids": "[0]"})


@pytest.fixture(scope="module")
def english() -> Translations:
    return load_translations()["en"]


@pytest.fixture(scope="module")
def japanese() -> Translations:
    return load_translations()["ja"]


def note(rank: int, code: str = "device-ids-dropped", args: Args = NO_ARGS) -> Note:
    message = "device_ids=[0] was dropped."
    return Note(rank=rank, seq=0, at_ns=1, code=code, message=message, args=args)


def raised(rank: int, column: int, end_column: int) -> RankEnd:
    failure = Failure(
        type="TypeError",
        message="can only concatenate str",
        line=1,
        column=column,
        end_line=1,
        end_column=end_column,
        frames=(Frame(line=1, function="<module>"),),
    )
    return RankEnd(rank=rank, exit=1, cpu_s=0.2, peak_bytes=50 * 1024 * 1024, failure=failure)


def stopped(rank: int, line: int) -> RankEnd:
    stack = (Frame(line=line, function="train"), Frame(line=30, function="<module>"))
    return RankEnd(rank=rank, exit=None, cpu_s=1.0, peak_bytes=0, stack=stack)


# ------------------------------------------------------------------ words
def test_a_note_of_all_ranks_is_said_once_in_the_language_of_the_page(
    japanese: Translations,
) -> None:
    trace = fold([made.started(), *(note(rank, args=WITH_IDS) for rank in range(4))])
    (said,) = run_view(record=made.Record(), trace=trace, translations=japanese).notes
    assert said.ranks == (0, 1, 2, 3)
    assert "device_ids=[0]" in said.text
    assert "DistributedDataParallel takes no device_ids" not in said.text


def test_notes_that_differ_only_by_rank_are_one_and_count_the_others(english: Translations) -> None:
    trace = fold(
        [made.started(), *(note(rank, args={"device_ids": f"[{rank}]"}) for rank in (2, 0, 1))]
    )
    (said,) = run_view(record=made.Record(), trace=trace, translations=english).notes
    assert "device_ids=[0]" in said.text
    assert (said.ranks, said.num_alike) == ((0, 1, 2), 2)


def test_notes_about_one_rank_each_are_one_if_they_say_the_same(english: Translations) -> None:
    cut = [
        note(-1, code="output-truncated", args={"rank": rank, "limit_kib": limit_kib})
        for rank, limit_kib in ((2, 256), (0, 256), (1, 64))
    ]
    notes = run_view(
        record=made.Record(), trace=fold([made.started(), *cut]), translations=english
    ).notes
    assert [(found.ranks, found.num_alike) for found in notes] == [((0, 2), 1), ((1,), 0)]
    assert "Rank 0" in notes[0].text


@pytest.mark.parametrize("forged", [note(0), note(0, code="no-such-code", args=WITH_IDS)])
def test_a_note_that_fits_no_template_keeps_its_own_message(
    forged: Note, japanese: Translations
) -> None:
    trace = fold([made.started(), forged])
    (said,) = run_view(record=made.Record(), trace=trace, translations=japanese).notes
    assert said.text == "device_ids=[0] was dropped."


def test_a_diagnosis_is_rendered_from_its_code_and_arguments(japanese: Translations) -> None:
    args: Args = {"line": 3, "detail": "invalid syntax"}
    found = Diagnosis(code="syntax-error", message="-", line=3, rank=None, args=args)
    trace = fold([made.started(), replace(made.outcome("error"), diagnosis=(found,))])
    view = run_view(record=made.Record(), trace=trace, translations=japanese)
    assert "3" in view.diagnosis[0].text
    assert "is not valid Python" not in view.diagnosis[0].text
    assert [(mark.line, mark.column) for mark in view.marks] == [(3, None)]


# ------------------------------------------------------------------ marks
def test_a_mark_behind_an_emoji_counts_utf16_code_units(english: Translations) -> None:
    start, end = JAPANESE_LINE.index('"'), JAPANESE_LINE.index("\n")
    trace = fold([made.started(), made.outcome("error", [raised(2, start, end)])])
    record = made.Record(source=JAPANESE_LINE)
    view = run_view(record=record, trace=trace, translations=english)
    (mark,) = json.loads(marks_json(view))
    assert (mark["line"], mark["column"], mark["end_column"]) == (1, start, end + 1)
    assert mark["rank"] == 2
    assert mark["text"] == "TypeError: can only concatenate str"


def test_the_same_failure_on_every_rank_is_marked_once(english: Translations) -> None:
    trace = fold([made.started(), made.outcome("error", [raised(r, 0, 5) for r in range(4)])])
    view = run_view(record=made.Record(), trace=trace, translations=english)
    assert len(view.marks) == 1


@pytest.mark.parametrize(
    ("text", "column", "units"), [("abc", 2, 2), ("あい", 2, 2), ("😀x", 1, 2)]
)
def test_columns_in_utf16(text: str, column: int, units: int) -> None:
    assert utf16_column(text, column) == units


# ------------------------------------------------------------------ ends and positions
def test_a_stopped_rank_says_the_innermost_line_it_was_on(english: Translations) -> None:
    trace = fold([made.started(), made.outcome("timeout", [stopped(0, 12)])])
    view = run_view(record=made.Record(), trace=trace, translations=english)
    assert (view.status, view.ranks[0].line, view.ranks[0].exit) == ("timeout", 12, None)


def test_a_frame_holds_new_output_but_the_whole_of_everything_else(english: Translations) -> None:
    trace = made.batch_norm_trace(synced=True)
    trace.add(made.output(0, "first\n"))
    trace.add(made.output(0, "second\n"))
    record = made.Record(state="running")
    frame = run_view(record=record, trace=trace, translations=english, output_from=1)
    assert [chunk.text for chunk in frame.output] == ["second\n"]
    assert len(frame.layers) == 2


def test_the_stream_goes_on_where_the_page_ended(english: Translations) -> None:
    events: list[Event] = [
        made.started(),
        made.output(0, "a\n"),
        made.gathered(0),
        note(0),
        made.outcome(),
    ]
    for count in range(len(events) + 1):
        trace = fold(events[:count])
        assert num_events(trace) == count
        view = run_view(record=made.Record(), trace=trace, translations=english)
        assert view.num_events == count


def test_named_panels_come_first_and_none_is_lost(english: Translations) -> None:
    view = run_view(
        record=made.Record(), trace=Trace(), translations=english, panels=("output", "statistics")
    )
    assert view.panels == ("output", "statistics", "collectives")


def test_a_run_without_events_still_draws(english: Translations) -> None:
    record = made.Record(state="queued", position=2)
    view = run_view(record=record, trace=Trace(), translations=english)
    assert (view.status, view.layers, view.output, view.timeline.num_calls) == (None, (), (), 0)
    assert json.loads(trace_json(Trace(), 0)) == json.loads(view.timeline.json)
