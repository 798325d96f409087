"""Checks of lesson files become what the rest of the app works with."""

import json
from pathlib import Path

import pytest

from app.lessons import (
    Catalogue,
    Check,
    FillCheck,
    Gap,
    Localized,
    Misconception,
    MultipleCheck,
    NumericCheck,
    Option,
    OrderCheck,
    OrderLine,
    SingleCheck,
    WrongNumber,
    WrongText,
    check_folder,
    load_catalogue,
)
from app.schema import lesson_json_schema, read_yaml
from tests.lessons.checks_sample import CHECKED, folder_with_checks
from tests.lessons.json_schema import complaints
from tests.lessons.test_malformed import LESSON


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return load_catalogue(folder_with_checks(tmp_path))


def english(words: str) -> Localized:
    return Localized(en=words)


SINGLE = SingleCheck(
    id="one",
    prompt=Localized(ja="何をしますか。", en="What does it do?"),
    options=(
        Option(
            id="sum", text=Localized(ja="足す", en="It adds"), feedback=None, misconception=None
        ),
        Option(
            id="mean",
            text=Localized(ja="平均", en="It averages"),
            feedback=Localized(ja="割りません。", en="Nothing is divided."),
            misconception="sum-is-mean",
        ),
        Option(id="copy", text=english("It copies"), feedback=None, misconception=None),
    ),
    answer_id="sum",
    explanation=Localized(ja="足します。", en="It adds."),
)
MULTIPLE = MultipleCheck(
    id="some",
    prompt=english("Which of these wait?"),
    options=(
        Option(id="barrier", text=english("barrier"), feedback=None, misconception=None),
        Option(id="reduce", text=english("all_reduce"), feedback=None, misconception=None),
        Option(
            id="rank",
            text=english("get_rank"),
            feedback=english("It reads a number."),
            misconception="collective-arguments",
        ),
    ),
    answer_ids=frozenset({"barrier", "reduce"}),
    explanation=english("Collectives wait."),
)
ORDER = OrderCheck(
    id="sorted",
    prompt=english("Put the lines in order."),
    lines=(
        OrderLine(id="start", code="dist.init_process_group()", after=frozenset(), is_needed=True),
        OrderLine(
            id="loop", code="for step in range(3):", after=frozenset({"start"}), is_needed=True
        ),
        OrderLine(
            id="body", code="    loss(step).backward()", after=frozenset({"loop"}), is_needed=True
        ),
        OrderLine(
            id="stop",
            code="dist.destroy_process_group()",
            after=frozenset({"body"}),
            is_needed=True,
        ),
        OrderLine(
            id="spawn",
            code="threading.Thread()",
            after=frozenset(),
            is_needed=False,
            feedback=english("Ranks are processes."),
            misconception="one-process",
        ),
    ),
    explanation=english("A group is there before it is used."),
)
NUMERIC = NumericCheck(
    id="bytes",
    prompt=english("How much does a rank hold?"),
    answer=2,
    tolerance=0.1,
    unit="KiB",
    units=(("B", 1 / 1024), ("MiB", 1024)),
    wrong=(
        WrongNumber(value=8, feedback=english("That is all ranks."), misconception="one-process"),
        WrongNumber(value=0.5, feedback=english("Divide once only."), misconception=None),
    ),
    explanation=english("A quarter."),
)
FILL = FillCheck(
    id="gaps",
    prompt=english("Complete the code."),
    pieces=(
        'print(f"{{plain}} {x}")\nx = dist.',
        Gap(
            id="call",
            answers=("all_reduce", "reduce"),
            ignore_case=False,
            wrong=(
                WrongText(
                    answers=frozenset({"all_mean", "average"}),
                    feedback=english("There is no such call."),
                    misconception="sum-is-mean",
                ),
                WrongText(
                    answers=frozenset({"all-reduce"}),
                    feedback=english("A name has no hyphen."),
                    misconception=None,
                ),
            ),
        ),
        "(y, ",
        Gap(id="op", answers=("SUM",), ignore_case=True, wrong=()),
        ")",
    ),
    explanation=english("It adds up."),
)


@pytest.mark.parametrize(
    "wanted", [SINGLE, MULTIPLE, ORDER, NUMERIC, FILL], ids=lambda check: check.kind
)
def test_check_is_read_with_all_its_parts(catalogue: Catalogue, wanted: Check) -> None:
    assert catalogue.lesson("lesson").check(wanted.id) == wanted


def test_checks_stand_in_the_order_of_the_file(catalogue: Catalogue) -> None:
    checks = catalogue.lesson("lesson").checks()
    assert checks == (SINGLE, MULTIPLE, ORDER, NUMERIC, FILL)


def test_misconceptions_are_read_in_the_order_of_the_file(catalogue: Catalogue) -> None:
    assert catalogue.misconceptions == (
        Misconception(
            id="sum-is-mean",
            title=Localized(ja="all_reduce は平均を取る", en="all_reduce takes the mean"),
        ),
        Misconception(id="one-process", title=english("Ranks are threads of one process")),
    )


def test_folder_needs_no_misconceptions(tmp_path: Path) -> None:
    named = ("sum-is-mean", "one-process")
    lines = [line for line in CHECKED.splitlines() if not line.strip().endswith(named)]
    folder = folder_with_checks(tmp_path, "\n".join(lines), misconceptions=None)
    assert check_folder(folder) == []
    assert load_catalogue(folder).misconceptions == ()


@pytest.mark.parametrize(
    ("old", "new", "tolerance"),
    [
        ("{relative: 0.05}", "{absolute: 0.25}", 0.25),
        ("{relative: 0.05}", "{absolute: 0}", 0),
        ("tolerance: {relative: 0.05}\n", "\n", 2e-9),
        ("answer: 2\n", "answer: -2\n", 0.1),
        ("answer: 2\n          tolerance: {relative: 0.05}\n", "answer: 0\n", 0),
    ],
    ids=["absolute", "none", "left out", "negative answer", "left out of zero"],
)
def test_tolerance_is_in_the_unit_of_the_answer(
    tmp_path: Path, old: str, new: str, tolerance: float
) -> None:
    assert old in CHECKED
    folder = folder_with_checks(tmp_path, CHECKED.replace(old, new, 1))
    check = load_catalogue(folder).lesson("lesson").check("bytes")
    assert isinstance(check, NumericCheck)
    assert check.tolerance == pytest.approx(tolerance, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("code", "pieces"),
    [
        ("{{call}} = {{op}}", ["call", " = ", "op"]),
        ('{{call}}(f"{{{op}}}")', ["call", '(f"{', "op", '}")']),
        ("x.{{call}}({{ op }}, {{op}})", ["x.", "call", "({{ op }}, ", "op", ")"]),
        ('x.{{call}}(f"{{other}} {{{{ }}}} {y}", {{op}})',
         ["x.", "call", '(f"{{other}} {{{{ }}}} {y}", ', "op", ")"]),
        ("{{call}}({{op}})\n\n\n", ["call", "(", "op", ")"]),
    ],
)  # fmt: skip
def test_code_is_cut_at_declared_gaps_only(tmp_path: Path, code: str, pieces: list[str]) -> None:
    old = """|
            print(f"{{plain}} {x}")
            x = dist.{{call}}(y, {{op}})
"""
    assert old in CHECKED
    folder = folder_with_checks(tmp_path, CHECKED.replace(old, json.dumps(code) + "\n", 1))
    check = load_catalogue(folder).lesson("lesson").check("gaps")
    assert isinstance(check, FillCheck)
    assert [p.id if isinstance(p, Gap) else p for p in check.pieces] == pieces


@pytest.mark.parametrize("lesson", [LESSON, CHECKED], ids=["first", "all checks"])
def test_schema_for_editors_accepts_a_right_lesson(tmp_path: Path, lesson: str) -> None:
    path = tmp_path / "lesson.yaml"
    path.write_text(lesson, encoding="utf-8")
    schema = json.loads(lesson_json_schema())
    assert complaints(schema, read_yaml(path, path.name).root) == []


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("          answer: sum\n", "", "single"),
        ("answers: [barrier, reduce]", "answers: []", "multiple"),
        ("{id: start, code:", "{id: start, line:", "order"),
        ("B: 0.0009765625", "B: 0", "numeric"),
        ("answer: 2\n", "answer: two\n", "numeric"),
        ("ignore_case: true", "ignore_case: maybe", "fill"),
        ("- single:", "- singel:", "singel"),
    ],
)
def test_schema_for_editors_marks_a_mistake(tmp_path: Path, old: str, new: str, at: str) -> None:
    path = tmp_path / "lesson.yaml"
    assert old in CHECKED
    path.write_text(CHECKED.replace(old, new, 1), encoding="utf-8")
    found = complaints(json.loads(lesson_json_schema()), read_yaml(path, path.name).root)
    assert len(found) == 1
    assert f"/{at}" in found[0]
