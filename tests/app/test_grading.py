"""Grading of matching questions, whatever a form sends."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading import Verdict, grade, words
from app.lessons import Localized, MatchCheck, MatchChoice, MatchFeedback, MatchItem


def text(en: str) -> Localized:
    return Localized(en=en, ja=f"{en} ja")


CHECK = MatchCheck(
    id="purpose",
    prompt=text("What for?"),
    choices=(
        MatchChoice(id="statistics", text=text("same statistics")),
        MatchChoice(id="memory", text=text("less memory")),
        MatchChoice(id="nothing", text=text("nothing")),
    ),
    items=(
        MatchItem(
            id="bn",
            text=text("SyncBatchNorm"),
            answer_choice_id="statistics",
            explanation=text("It shares means."),
            feedback=(MatchFeedback(choice_id="memory", text=text("It holds no less.")),),
        ),
        MatchItem(
            id="fsdp",
            text=text("FSDP"),
            answer_choice_id="memory",
            explanation=text("It shards."),
            feedback=(),
        ),
    ),
)


def said(verdict: Verdict, item_id: str) -> str:
    item = verdict.item(item_id)
    assert item is not None
    assert item.feedback is not None
    return item.feedback.value


def test_right_answer_gets_its_explanations() -> None:
    verdict = grade(CHECK, {"bn": "statistics", "fsdp": "memory"}, "ja")
    assert (verdict.is_right, verdict.num_right, verdict.num_items) == (True, 2, 2)
    assert said(verdict, "bn") == "It shares means. ja"
    assert said(verdict, "fsdp") == "It shards. ja"


def test_wrong_choice_gets_the_feedback_written_for_it() -> None:
    verdict = grade(CHECK, {"bn": "memory", "fsdp": "memory"}, "en")
    assert (verdict.is_right, verdict.num_right) == (False, 1)
    assert [item.is_right for item in verdict.items] == [False, True]
    assert said(verdict, "bn") == "It holds no less."


def test_other_wrong_choice_gets_a_general_word_without_the_key() -> None:
    verdict = grade(CHECK, {"fsdp": "nothing"}, "en")
    assert said(verdict, "fsdp").startswith("Not this one")
    assert "memory" not in said(verdict, "fsdp")


@pytest.mark.parametrize("answers", [{}, {"bn": ""}, {"bn": "no-such-choice"}])
def test_missing_answer_is_said_to_be_missing(answers: dict[str, str]) -> None:
    verdict = grade(CHECK, answers, "en")
    assert [item.is_given for item in verdict.items] == [False, False]
    assert "Nothing is chosen" in said(verdict, "bn")


def _general_words() -> list[Localized]:
    return [word for word in vars(words).values() if isinstance(word, Localized)]


def test_general_words_are_there_in_both_languages() -> None:
    assert len(_general_words()) > 20
    for word in _general_words():
        assert word.en
        assert word.ja
        assert re.search(r"[ぁ-ん]", word.ja)


def test_general_words_name_no_number() -> None:
    for word in _general_words():
        assert not re.search(r"\d", f"{word.en}{word.ja}")


@given(st.dictionaries(st.text(), st.text()))
def test_no_form_input_is_an_error(answers: dict[str, str]) -> None:
    verdict = grade(CHECK, answers, "en")
    assert 0 <= verdict.num_right <= verdict.num_items == 2


def test_order_of_choices_is_stable_and_not_the_files() -> None:
    shown = [choice.id for choice in CHECK.shown_choices()]
    assert sorted(shown) == sorted(choice.id for choice in CHECK.choices)
    assert shown == [choice.id for choice in CHECK.shown_choices()]
