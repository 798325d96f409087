"""Grading of questions with options, and what their verdicts give away."""

from collections.abc import Iterable
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading import Verdict, grade
from app.lessons import Localized, MultipleCheck, Option, SingleCheck


def text(en: str) -> Localized:
    return Localized(en=en, ja=f"{en} ja")


def option(name: str, feedback: str | None = None, misconception: str | None = None) -> Option:
    return Option(
        id=name,
        text=text(f"the option {name}"),
        feedback=text(feedback) if feedback else None,
        misconception=misconception,
    )


OPTIONS = (
    option("a"),
    option("b", "Why b is wrong.", "believes-b"),
    option("c"),
    option("d"),
    option("e", "Why e is wrong.", "believes-b"),
)
SINGLE = SingleCheck(
    id="one", prompt=text("Which?"), options=OPTIONS, answer_id="a", explanation=text("As it is.")
)
NAMES = [each.id for each in OPTIONS]


def multiple(answers: Iterable[str] = ("a", "c")) -> MultipleCheck:
    return MultipleCheck(
        id="some",
        prompt=text("Which ones?"),
        options=OPTIONS,
        answer_ids=frozenset(answers),
        explanation=text("Because of that."),
    )


def tick(*names: str) -> dict[str, str]:
    return {"answered": "", **dict.fromkeys(names, "on")}


def marks(verdict: Verdict) -> dict[str, bool]:
    return {item.item_id: item.is_right for item in verdict.items if item.is_given}


def feedback(verdict: Verdict) -> dict[str, str]:
    return {item.item_id: item.feedback.value for item in verdict.items if item.feedback}


def remark(verdict: Verdict) -> str:
    assert verdict.remark is not None
    return verdict.remark.value


def test_right_option_gets_the_explanation() -> None:
    verdict = grade(SINGLE, {"choice": "a"}, "ja")
    assert (verdict.is_right, verdict.num_right, verdict.num_items) == (True, 1, 1)
    assert feedback(verdict) == {"choice": "As it is. ja"}


def test_wrong_option_gets_its_own_feedback_and_shows_its_misconception() -> None:
    verdict = grade(SINGLE, {"choice": "b"}, "en")
    assert marks(verdict) == {"choice": False}
    assert feedback(verdict) == {"choice": "Why b is wrong."}
    assert verdict.misconceptions == ("believes-b",)


def test_wrong_option_without_feedback_gets_a_general_word() -> None:
    verdict = grade(SINGLE, {"choice": "c"}, "en")
    assert marks(verdict) == {"choice": False}
    assert feedback(verdict)["choice"].startswith("Not this one")
    assert verdict.misconceptions == ()


@pytest.mark.parametrize("sent", [{}, {"choice": ""}, {"choice": "z"}, {"a": "on"}])
def test_no_known_option_is_no_answer(sent: dict[str, str]) -> None:
    verdict = grade(SINGLE, sent, "en")
    assert not verdict.is_right
    assert marks(verdict) == {}
    assert "Nothing is chosen" in feedback(verdict)["choice"]


def test_right_options_get_the_explanation_once() -> None:
    verdict = grade(multiple(), tick("a", "c"), "en")
    assert verdict.is_right
    assert verdict.num_right == verdict.num_items == len(OPTIONS)
    assert verdict.explanation is not None
    assert verdict.explanation.value == "Because of that."
    assert (feedback(verdict), verdict.remark) == ({}, None)
    assert marks(verdict) == {"a": True, "c": True}


def test_wrong_ticks_get_their_feedback_or_a_general_word() -> None:
    verdict = grade(multiple(), tick("a", "b", "d"), "en")
    assert marks(verdict) == {"a": True, "b": False, "d": False}
    assert feedback(verdict).keys() == {"b", "d"}
    assert feedback(verdict)["b"] == "Why b is wrong."
    assert feedback(verdict)["d"].startswith("Not this one")
    assert verdict.misconceptions == ("believes-b",)
    assert verdict.explanation is None


@pytest.mark.parametrize("ticked", [("b",), ("a", "b"), ("a", "b", "c")])
def test_wrong_tick_hides_whether_something_is_missing(ticked: tuple[str, ...]) -> None:
    said = remark(grade(multiple(), tick(*ticked), "en"))
    assert said == "Look at what you did not tick once more, too."


def test_misconception_of_two_wrong_options_is_shown_once() -> None:
    assert grade(multiple(), tick("b", "e"), "en").misconceptions == ("believes-b",)


def test_option_that_was_left_out_is_not_named() -> None:
    verdict = grade(multiple(), tick("c"), "en")
    assert not verdict.is_right
    assert marks(verdict) == {"c": True}
    assert feedback(verdict) == {}
    assert "something is still missing" in remark(verdict)
    assert verdict.num_right == 1


def test_nothing_ticked_is_no_answer() -> None:
    for sent in (tick(), {}, {"a": "on", "c": "on"}, {"answered": "", "a": "yes", "c": "yes"}):
        verdict = grade(multiple(), sent, "en")
        assert not verdict.is_right
        assert marks(verdict) == {}
        assert "Nothing is ticked" in remark(verdict)


def test_whoever_ticks_everything_learns_of_one_wrong_option() -> None:
    verdict = grade(multiple(), tick(*NAMES), "en")
    assert list(marks(verdict).values()) == [False]
    assert feedback(verdict).keys() == marks(verdict).keys() < {"b", "d", "e"}
    assert "Not every option" in remark(verdict)


def test_everything_may_be_right() -> None:
    assert grade(multiple(NAMES), tick(*NAMES), "en").is_right


def subsets(names: Iterable[str]) -> list[frozenset[str]]:
    names = list(names)
    sizes = (combinations(names, size) for size in range(len(names) + 1))
    return [frozenset(subset) for subset in chain.from_iterable(sizes)]


@pytest.mark.parametrize("ticked", subsets(NAMES), ids="".join)
def test_wrong_verdict_is_the_same_whatever_else_is_right(ticked: frozenset[str]) -> None:
    """Nothing that was not ticked can be told from the verdict."""
    for right in subsets(ticked):
        keys = [right | others for others in subsets(set(NAMES) - ticked)]
        verdicts = {
            grade(multiple(key), tick(*ticked), "en") for key in keys if key and key != ticked
        }
        assert len(verdicts) <= 1


def test_parts_come_as_on_the_page() -> None:
    check = multiple()
    shown = [each.id for each in check.shown_options()]
    assert shown != NAMES
    assert [item.item_id for item in grade(check, tick("b"), "en").items] == shown


ANYTHING = st.dictionaries(
    st.sampled_from(["answered", "choice", *NAMES]) | st.text(max_size=3),
    st.sampled_from(["on", "", *NAMES]) | st.text(max_size=3),
)


@given(ANYTHING)
def test_only_the_right_option_is_right(sent: dict[str, str]) -> None:
    verdict = grade(SINGLE, sent, "ja")
    assert verdict.is_right == (sent.get("choice") == "a")
    assert verdict.items[0].feedback is not None
    assert verdict.is_right or "the option" not in str(verdict)


@given(ANYTHING)
def test_only_the_right_options_are_right(sent: dict[str, str]) -> None:
    verdict = grade(multiple(), sent, "ja")
    ticked = {name for name in NAMES if sent.get(name) == "on"}
    assert verdict.is_right == ("answered" in sent and ticked == {"a", "c"})
    assert (verdict.remark is None) == verdict.is_right
    assert (verdict.explanation is None) != verdict.is_right
    assert "the option" not in str(verdict)
