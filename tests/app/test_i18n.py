"""Languages: negotiation, catalogues, and that every engine sentence exists in Japanese."""

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.i18n import CatalogueError, load_translations, negotiate, render_code
from app.panels.refusals import told
from engine.diagnosis.rule import where_ranks_were
from engine.events import Frame, Outcome, RankEnd
from engine.facts import Args
from engine.grading_messages import VERDICTS
from engine.messages import DIAGNOSES, NOTES, PHRASES
from engine.refusal_messages import REFUSALS, recognise
from engine.sandbox.choice import SandboxChoice
from engine.sandbox.findings import PLATFORM_FIX, ProbeName, fix_of
from engine.sandbox.tiers import choose

PLACEHOLDER = re.compile(r"\{[^{}]*\}")


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"),
        ("", "en"),
        ("ja", "ja"),
        ("ja-JP,ja;q=0.9,en;q=0.8", "ja"),
        ("en-US,en;q=0.9,ja;q=0.8", "en"),
        ("fr,ja;q=0.3", "ja"),
        ("fr,de", "en"),
        ("ja;q=0,en;q=0.1", "en"),
        ("JA", "ja"),
        ("ja;q=nonsense,en;q=0.5", "en"),
        (";;;,,,=", "en"),
    ],
)
def test_language_is_negotiated(header: str | None, language: str) -> None:
    assert negotiate(header) == language


@given(st.text())
def test_no_header_is_an_error(header: str) -> None:
    assert negotiate(header) in ("ja", "en")


@pytest.mark.parametrize(
    "template", [*NOTES.values(), *DIAGNOSES.values(), *PHRASES, *VERDICTS.values()]
)
def test_every_engine_sentence_has_a_japanese_one_with_the_same_arguments(template: str) -> None:
    translated = load_translations()["ja"].gettext(template)
    assert translated != template
    assert sorted(PLACEHOLDER.findall(translated)) == sorted(PLACEHOLDER.findall(template))


@pytest.mark.parametrize("template", REFUSALS)
def test_every_refusal_is_recognised_and_told_in_japanese(template: str) -> None:
    args = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", template)}
    said = told(template.format_map(args), load_translations()["ja"])
    assert said != template.format_map(args)
    assert all(value in said for value in args.values())


def test_refusals_of_the_doctor_are_among_them() -> None:
    remedies = [fix_of(name, number) for name in get_args(ProbeName) for number in (0, 1, 22, 28)]
    sentences = [remedy for remedy in remedies if re.match(r"[A-Z][a-z]+ .*", remedy)]
    found = choose(SandboxChoice(at_most="open"))
    for sentence in (*sentences, PLATFORM_FIX, found.reason or ""):
        assert recognise(sentence) is not None, sentence


def test_command_line_is_told_as_it_is() -> None:
    assert told("sysctl -w a.b=1", load_translations()["ja"]) == "sysctl -w a.b=1"


def test_engine_code_is_rendered_in_the_language() -> None:
    args: Args = {"rank": 2, "type": "KeyError", "line": 5, "detail": "'x'"}
    english = render_code(load_translations()["en"], DIAGNOSES["exception"], args)
    japanese = render_code(load_translations()["ja"], DIAGNOSES["exception"], args)
    assert english == "Rank 2 raised KeyError on line 5: 'x'"
    assert english != japanese
    assert all(part in japanese for part in ("2", "KeyError", "5"))


def test_broken_catalogue_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "ja").mkdir()
    (tmp_path / "ja" / "bad.po").write_text("no catalogue at all\n", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"bad\.po"):
        load_translations(tmp_path)


def end(rank: int, *, exit_code: int | None, line: int | None) -> RankEnd:
    stack = () if line is None else (Frame(line=line, function="<module>"),)
    return RankEnd(rank=rank, exit=exit_code, cpu_s=0.1, peak_bytes=1, stack=stack)


def test_places_of_ranks_are_told_in_the_language() -> None:
    outcome = Outcome(
        rank=-1,
        seq=0,
        at_ns=0,
        status="deadlock",
        ranks=(
            end(0, exit_code=None, line=17),
            end(1, exit_code=0, line=None),
            end(12, exit_code=None, line=None),
        ),
        diagnosis=(),
        elapsed_s=1.0,
        dropped_events=0,
    )
    where = where_ranks_were(outcome, {0: "all_reduce"})
    args: Args = {
        "rank": 0,
        "op": "all_reduce",
        "line": 17,
        "missing": "ranks 1, 12",
        "where": where,
    }
    japanese = render_code(load_translations()["ja"], DIAGNOSES["deadlock"], args)
    assert re.findall(r"[a-z_]+", japanese) == ["all_reduce", "all_reduce"]
    assert "ランク 1, 12" in japanese
    assert (
        "ランク 0 は 17 行目の all_reduce の中, ランク 1 は終了済み, ランク 12 はプログラムの外"
        in japanese
    )
    english = render_code(load_translations()["en"], DIAGNOSES["deadlock"], args)
    assert where in english


@pytest.mark.parametrize("missing", ["rank 3", "its partner", "another rank"])
def test_missing_ranks_are_named_in_the_language(missing: str) -> None:
    args: Args = {"rank": 0, "op": "a collective", "line": None, "missing": missing, "where": ""}
    japanese = render_code(load_translations()["ja"], DIAGNOSES["deadlock"], args)
    assert not re.search(r"[a-z]", japanese)


def test_calls_of_ranks_are_told_in_the_language() -> None:
    calls = (
        "rank 0 called all_gather on line 5 (4 float32 values, layer blocks.1), "
        "ranks 1, 2 called barrier on line 7, rank 3 called send"
    )
    args: Args = {"calls": calls, "op": "all_gather", "line": 5}
    japanese = render_code(load_translations()["ja"], DIAGNOSES["sizes-differ"], args)
    told = japanese.partition("：")[2].partition("。")[0]
    assert told == (
        "ランク 0 は 5 行目で all_gather を呼び出し (float32 の値 4 個, 層 blocks.1), "
        "ランク 1, 2 は 7 行目で barrier を呼び出し, ランク 3 は send を呼び出し"
    )
