"""Grading of numbers, however learners write them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading import Verdict, grade
from app.grading.numerals import read_quantity
from app.lessons import Localized, NumericCheck, WrongNumber


def text(en: str) -> Localized:
    return Localized(en=en, ja=f"{en} ja")


def wrong(value: float, feedback: str, misconception: str | None = None) -> WrongNumber:
    return WrongNumber(value=value, feedback=text(feedback), misconception=misconception)


def numeric(
    answer: float,
    tolerance: float = 0.0,
    unit: str | None = None,
    units: tuple[tuple[str, float], ...] = (),
    wrong: tuple[WrongNumber, ...] = (),
) -> NumericCheck:
    return NumericCheck(
        id="how-much",
        prompt=text("How much?"),
        answer=answer,
        tolerance=tolerance,
        unit=unit,
        units=units,
        wrong=wrong,
        explanation=text("It adds up."),
    )


MEMORY = numeric(
    12.0,
    tolerance=0.5,
    unit="MiB",
    units=(("KiB", 1 / 1024), ("GiB", 1024.0)),
    wrong=(wrong(24.0, "That counts both twice.", "counts-twice"), wrong(6.0, "Half.")),
)


def said(verdict: Verdict) -> str:
    (item,) = verdict.items
    assert item.item_id == "value"
    assert item.feedback is not None
    return item.feedback.value


def is_given(verdict: Verdict) -> bool:
    return verdict.items[0].is_given


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1024", "1024"),
        ("1,024", "1024"),
        ("1 024", "1024"),
        ("1_024", "1024"),
        ("１０２４", "1024"),
        ("１，０２４．５", "1024.5"),
        (" 1024 ", "1024"),
        ("　1024　", "1024"),
        ("12,345,678.5", "12345678.5"),
        ("2.5e-3", "0.0025"),
        ("2.5E−3", "0.0025"),
        ("1e+03", "1000"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+5", "5"),
        ("-3", "-3"),
        ("−3", "-3"),
        ("－３", "-3"),
        ("ー3", "-3"),
        ("- 3", "-3"),
        ("1/3", "1/3"),
        ("-1 / 3", "-1/3"),
        ("１／３", "1/3"),
        ("1,000/2_000", "1/2"),
        ("1e308", str(10**308)),
    ],
)
def test_number_is_read_as_it_is_written(written: str, value: str) -> None:
    quantity = read_quantity(written)
    assert quantity is not None
    assert (quantity.number, quantity.unit) == (Fraction(value), "")


@pytest.mark.parametrize(
    "written",
    [
        "nan",
        "inf",
        "-Infinity",
        "1e999999999",
        "1e-999999999",
        "1e309",
        "1/0",
        "0/0",
        "x",
        "1.2.3",
        "1__0",
        "12 3456",
        "3²",
        "10³",
        "1٣",
        "½",
        "-",
        "9" * 101,
        "1e" + "9" * 100_000,
        "1/" * 50,
    ],
)
def test_what_is_no_number_is_no_answer(written: str) -> None:
    verdict = grade(numeric(1.0), {"value": written}, "en")
    assert not is_given(verdict)
    assert said(verdict) in (
        "This cannot be read as a number. Write it in digits.",
        "Write a number and nothing else.",
    )


@pytest.mark.parametrize("written", ["1,5", "0,125", "1,24", "1,0245", "12345,678", "1.024,5"])
def test_comma_that_separates_no_thousands_is_asked_to_be_a_point(written: str) -> None:
    for check in (numeric(1.5), MEMORY):
        verdict = grade(check, {"value": written, "unit": "MiB"}, "en")
        assert not is_given(verdict)
        assert "with a point" in said(verdict)


@pytest.mark.parametrize("sent", [{}, {"value": ""}, {"value": " 　"}, {"unit": "MiB"}])
def test_nothing_written_is_no_answer(sent: dict[str, str]) -> None:
    verdict = grade(MEMORY, sent, "en")
    assert not is_given(verdict)
    assert "Nothing is written yet" in said(verdict)


def test_right_number_gets_the_explanation() -> None:
    verdict = grade(MEMORY, {"value": "12", "unit": "MiB"}, "ja")
    assert (verdict.is_right, verdict.num_right, verdict.num_items) == (True, 1, 1)
    assert said(verdict) == "It adds up. ja"


@pytest.mark.parametrize(
    ("written", "chosen", "is_right"),
    [
        ("12.5", "MiB", True),
        ("11.5", "MiB", True),
        ("12.51", "MiB", False),
        ("12,288", "KiB", True),
        ("12", "KiB", False),
        ("0.01171875", "GiB", True),
        ("12 MiB", "GiB", True),
        ("12MiB", "", True),
        ("１２ＭｉＢ", "", True),
        ("12 mib", "", True),
        ("12 288 KiB", "MiB", True),
        ("3/256 GiB", "MiB", True),
        ("12 GiB", "MiB", False),
    ],
)
def test_unit_behind_the_number_comes_before_the_chosen_one(
    written: str, chosen: str, is_right: bool
) -> None:
    verdict = grade(MEMORY, {"value": written, "unit": chosen}, "en")
    assert is_given(verdict)
    assert verdict.is_right == is_right


def test_units_that_differ_in_case_alone_are_told_apart() -> None:
    check = numeric(8.0, unit="Mb", units=(("MB", 8.0),))
    assert grade(check, {"value": "1 MB"}, "en").is_right
    assert grade(check, {"value": "8 Mb"}, "en").is_right
    assert not is_given(grade(check, {"value": "8 mb"}, "en"))


def test_signs_of_a_unit_may_be_written_either_way() -> None:
    check = numeric(5.0, unit="\N{MICRO SIGN}s", units=(("MiB / s", 2.0), ("%", 3.0)))
    for written in ("5 \N{GREEK SMALL LETTER MU}s", "2.5 MiB/s", "5/3 ％"):
        assert grade(check, {"value": written}, "en").is_right


def test_unknown_unit_is_no_answer() -> None:
    verdict = grade(MEMORY, {"value": "12 bananas", "unit": "MiB"}, "en")
    assert not is_given(verdict)
    assert "not on offer" in said(verdict)
    bare = grade(numeric(12.0), {"value": "12 MiB"}, "en")
    assert not is_given(bare)
    assert said(bare) == "Write a number and nothing else."


@pytest.mark.parametrize("chosen", ["", "TiB"])
def test_unit_must_be_chosen_where_there_are_several(chosen: str) -> None:
    verdict = grade(MEMORY, {"value": "12", "unit": chosen}, "en")
    assert not is_given(verdict)
    assert said(verdict) == "Choose a unit."
    assert grade(numeric(12.0, unit="ms"), {"value": "12", "unit": chosen}, "en").is_right


def test_right_number_in_a_wrong_unit_is_recognised() -> None:
    for sent in ({"value": "12", "unit": "GiB"}, {"value": "12288 MiB"}):
        verdict = grade(MEMORY, sent, "en")
        assert (verdict.is_right, is_given(verdict)) == (False, True)
        assert said(verdict) == "The number is right. Look at the unit."


@pytest.mark.parametrize("sent", [{"value": "24.4 MiB"}, {"value": "24576", "unit": "KiB"}])
def test_wrong_number_gets_the_feedback_written_for_it(sent: dict[str, str]) -> None:
    verdict = grade(MEMORY, sent, "en")
    assert said(verdict) == "That counts both twice."
    assert verdict.misconceptions == ("counts-twice",)


def test_nearest_wrong_number_is_recognised() -> None:
    check = numeric(100.0, tolerance=5.0, wrong=(wrong(10.0, "ten"), wrong(12.0, "twelve")))
    assert said(grade(check, {"value": "11.5"}, "en")) == "twelve"
    assert said(grade(check, {"value": "10.5"}, "en")) == "ten"


def test_wrong_number_is_recognised_despite_rounding() -> None:
    check = numeric(1.0, wrong=(wrong(1 / 3, "a third"),))
    assert said(grade(check, {"value": "1/3"}, "en")) == "a third"
    assert said(grade(check, {"value": "0.33"}, "en")).startswith("Not this number")


def test_other_wrong_number_gets_a_general_word() -> None:
    verdict = grade(MEMORY, {"value": "99", "unit": "MiB"}, "en")
    assert said(verdict) == "Not this number. Work it out once more, step by step."
    assert verdict.misconceptions == ()
    assert verdict.explanation is None


@pytest.mark.parametrize(
    ("answer", "tolerance", "written"),
    [
        (0.3, 0.0, "0.3"),
        (0.3, 0.0, "3/10"),
        (0.1 + 0.2, 0.0, "0.3"),
        (0.3, 0.1, "0.4"),
        (0.3, 0.1, "0.2"),
        (100.0, 0.29 * 100, "129"),
        (0.1, 0.1 * 3, "0.4"),
        (1e300, 0.0, "1e300"),
        (0.0, 0.0, "-0"),
    ],
)
def test_number_on_the_boundary_is_right(answer: float, tolerance: float, written: str) -> None:
    assert grade(numeric(answer, tolerance), {"value": written}, "en").is_right


def test_whole_number_beside_a_large_one_is_wrong() -> None:
    assert not grade(numeric(175_181_291_520.0), {"value": "175181291521"}, "en").is_right


@given(st.integers(-(10**14), 10**14), st.integers(-2, 2))
def test_only_the_number_itself_is_right_without_tolerance(number: int, off_by: int) -> None:
    for written in (f"{number + off_by:,}", f"{number + off_by:_}", f"{number + off_by}.0"):
        verdict = grade(numeric(float(number)), {"value": written}, "en")
        assert verdict.is_right == (off_by == 0)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back(number: float) -> None:
    exponent = repr(number).partition("e")[2]
    if int(exponent or 0) >= -308:
        assert grade(numeric(number), {"value": repr(number)}, "en").is_right


NUMBER_LIKE = st.text(alphabet="0123456789eE.,_-+−/ １，MiBKGinfnan％ー", max_size=20)


@given(st.dictionaries(st.sampled_from(["value", "unit"]) | st.text(), NUMBER_LIKE | st.text()))
def test_no_form_input_is_an_error(sent: dict[str, str]) -> None:
    check = numeric(73.25, unit="MiB", units=(("KiB", 1 / 1024),))
    verdict = grade(check, sent, "ja")
    assert verdict.is_right or "73.25" not in said(verdict)
    assert is_given(verdict) or not verdict.is_right


@given(st.floats(-1000, 1000), st.floats(0, 10), st.sampled_from(["MiB", "KiB", "GiB"]))
def test_number_is_right_within_the_tolerance_alone(
    value: float, tolerance: float, unit: str
) -> None:
    """The same as plain arithmetic, away from the boundary."""
    check = numeric(12.0, tolerance, "MiB", (("KiB", 0.0009765625), ("GiB", 1024.0)))
    factor = {"MiB": 1.0, "KiB": 0.0009765625, "GiB": 1024.0}[unit]
    distance = abs(value * factor - 12.0) - tolerance
    verdict = grade(check, {"value": f"{value:.20f} {unit}"}, "en")
    if abs(distance) > 1e-9:
        assert verdict.is_right == (distance < 0)
