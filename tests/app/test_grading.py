"""Grading of matching questions, whatever a form sends."""

from hypothesis import given
from hypothesis import strategies as st

from app.grading import grade
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


def test_right_answer_gets_its_explanations() -> None:
    verdict = grade(CHECK, {"bn": "statistics", "fsdp": "memory"}, "ja")
    assert (verdict.is_right, verdict.num_right, verdict.num_items) == (True, 2, 2)
    assert [item.feedback.value for item in verdict.items] == [
        "It shares means. ja",
        "It shards. ja",
    ]


def test_wrong_choice_gets_the_feedback_written_for_it() -> None:
    verdict = grade(CHECK, {"bn": "memory", "fsdp": "memory"}, "en")
    assert (verdict.is_right, verdict.num_right) == (False, 1)
    bn = verdict.item("bn")
    assert bn is not None
    assert (bn.is_right, bn.feedback.value) == (False, "It holds no less.")


def test_other_wrong_choice_gets_a_general_word_without_the_key() -> None:
    verdict = grade(CHECK, {"fsdp": "nothing"}, "en")
    fsdp = verdict.item("fsdp")
    assert fsdp is not None
    assert fsdp.feedback.value.startswith("Not this one")
    assert "memory" not in fsdp.feedback.value


def test_missing_answer_is_said_to_be_missing() -> None:
    bn = grade(CHECK, {}, "en").item("bn")
    assert bn is not None
    assert bn.choice_id is None
    assert "Nothing is chosen" in bn.feedback.value


@given(st.dictionaries(st.text(), st.text()))
def test_no_form_input_is_an_error(answers: dict[str, str]) -> None:
    verdict = grade(CHECK, answers, "en")
    assert 0 <= verdict.num_right <= verdict.num_items == 2


def test_order_of_choices_is_stable_and_not_the_files() -> None:
    shown = [choice.id for choice in CHECK.shown_choices()]
    assert sorted(shown) == sorted(choice.id for choice in CHECK.choices)
    assert shown == [choice.id for choice in CHECK.shown_choices()]
