"""Grading of lines in order, and what the verdicts give away."""

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading import Verdict, grade
from app.lessons import Localized, OrderCheck, OrderLine


def text(en: str) -> Localized:
    return Localized(en=en, ja=f"{en} ja")


def line(name: str, *after: str) -> OrderLine:
    return OrderLine(id=name, code=f"code_of_{name}()", after=frozenset(after), is_needed=True)


def surplus(name: str, feedback: str | None, misconception: str | None = None) -> OrderLine:
    return OrderLine(
        id=name,
        code=f"code_of_{name}()",
        after=frozenset(),
        is_needed=False,
        feedback=text(feedback) if feedback else None,
        misconception=misconception,
    )


NEEDED = (
    line("start"),
    line("model", "start"),
    line("data", "start"),
    line("step", "model", "data"),
)
SURPLUS = (surplus("spawn", "torchrun did it.", "spawns-twice"), surplus("sleep", None))


def order(*lines: OrderLine) -> OrderCheck:
    return OrderCheck(
        id="loop", prompt=text("In order?"), lines=lines, explanation=text("So it runs.")
    )


CHECK = order(*NEEDED, *SURPLUS)


def places(*names: str) -> dict[str, str]:
    return {name: str(place) for place, name in enumerate(names, 1)}


def marks(verdict: Verdict) -> dict[str, bool]:
    return {item.item_id: item.is_right for item in verdict.items if item.is_given}


def feedback(verdict: Verdict) -> dict[str, str]:
    return {item.item_id: item.feedback.value for item in verdict.items if item.feedback}


def remark(verdict: Verdict) -> str:
    return verdict.remark.value if verdict.remark else ""


@pytest.mark.parametrize(
    "sent",
    [
        places("start", "model", "data", "step"),
        places("start", "data", "model", "step"),
        {**places("start", "data", "model", "step"), "spawn": "", "sleep": " "},
        {"start": "１", "model": " 2 ", "data": "03", "step": "１２"},
    ],
)
def test_every_order_that_the_lines_allow_is_right(sent: dict[str, str]) -> None:
    verdict = grade(CHECK, sent, "en")
    assert verdict.is_right
    assert verdict.num_right == verdict.num_items == 6
    assert verdict.explanation is not None
    assert verdict.explanation.value == "So it runs."
    assert (feedback(verdict), remark(verdict)) == ({}, "")
    assert marks(verdict).keys() == {line.id for line in NEEDED}


def test_first_line_before_what_it_needs_is_marked() -> None:
    verdict = grade(CHECK, places("step", "data", "start", "model"), "en")
    assert not verdict.is_right
    assert marks(verdict) == {"step": False, "start": True, "model": True}
    assert feedback(verdict) == {"step": "Something that this line needs comes later."}
    assert (verdict.explanation, remark(verdict)) == (None, "")


def test_line_that_is_not_needed_gets_its_feedback() -> None:
    verdict = grade(CHECK, places("start", "spawn", "model", "data", "step"), "en")
    assert marks(verdict)["spawn"] is False
    assert feedback(verdict) == {"spawn": "torchrun did it."}
    assert verdict.misconceptions == ("spawns-twice",)


def test_line_that_is_not_needed_and_has_no_feedback_gets_a_general_word() -> None:
    verdict = grade(CHECK, places("start", "sleep"), "en")
    assert feedback(verdict) == {"sleep": "The program does not need this line."}


def test_lines_with_the_same_place_are_marked() -> None:
    sent = {**places("start", "model", "data", "step"), "data": "2"}
    verdict = grade(CHECK, sent, "en")
    assert marks(verdict) == {"start": True, "model": False, "data": False, "step": True}
    assert set(feedback(verdict).values()) == {"Another line has the same place."}
    assert feedback(verdict).keys() == {"model", "data"}


def test_line_that_was_left_out_is_not_named() -> None:
    verdict = grade(CHECK, places("start", "model", "step"), "en")
    assert not verdict.is_right
    assert "Something is still missing" in remark(verdict)
    assert feedback(verdict) == {}
    assert marks(verdict) == {"start": True, "model": True}


@pytest.mark.parametrize("text", ["0", "first", "1.5", "-1", "²³x", "9" * 5, "9" * 100_000])
def test_what_is_no_place_is_said_to_be_none(text: str) -> None:
    for name in ("data", "sleep"):
        verdict = grade(CHECK, {**places("start", "model", "data", "step"), name: text}, "en")
        assert not verdict.is_right
        assert name not in marks(verdict)
        assert feedback(verdict)[name].startswith("This is no place")
        assert remark(verdict) == ""


@pytest.mark.parametrize("sent", [{}, {"start": "", "sleep": " "}, {"unknown": "1"}])
def test_no_place_at_all_is_no_answer(sent: dict[str, str]) -> None:
    verdict = grade(CHECK, sent, "en")
    assert marks(verdict) == {}
    assert "No line has a place yet" in remark(verdict)


def test_whoever_places_every_line_learns_of_one_that_is_not_needed() -> None:
    verdict = grade(CHECK, places("sleep", "start", "model", "data", "step", "spawn"), "en")
    assert marks(verdict) == {"sleep": False}
    assert "does not need every line" in remark(verdict)


def test_every_line_may_be_needed() -> None:
    check = order(*NEEDED)
    assert grade(check, places("start", "model", "data", "step"), "en").is_right
    early = grade(check, places("model", "start", "data", "step"), "en")
    assert feedback(early).keys() == {"model"}


def test_parts_come_as_on_the_page() -> None:
    shown = [each.id for each in CHECK.shown_lines()]
    assert shown != [each.id for each in CHECK.lines]
    assert [item.item_id for item in grade(CHECK, {}, "en").items] == shown


@pytest.mark.parametrize("used", [("start",), ("start", "spawn"), ("spawn", "model", "start")])
def test_verdict_is_the_same_whichever_other_lines_are_needed(used: tuple[str, ...]) -> None:
    """Nothing that was left out can be told from the verdict."""
    start, spawn = line("start"), SURPLUS[0]
    model = line("model", "start")
    one, other = line("one", "start"), line("other", "model")
    no_one, no_other = surplus("one", "Not one."), surplus("other", "Not the other.")
    checks = [
        order(start, model, one, other, spawn),
        order(start, model, one, spawn, no_other),
        order(start, model, other, spawn, no_one),
    ]
    verdicts = {grade(check, places(*used), "en") for check in checks}
    assert len(verdicts) == 1


def allowed(sent: Mapping[str, str]) -> bool:
    """Whether the places are those of one of the right orders."""
    names = [each.id for each in NEEDED]
    if {name for name in sent if sent[name].strip()} != set(names):
        return False
    numbers = {name: int(sent[name]) for name in names}
    in_order = sorted(names, key=lambda name: numbers[name])
    return len(set(numbers.values())) == len(names) and in_order in (
        ["start", "model", "data", "step"],
        ["start", "data", "model", "step"],
    )


@pytest.mark.parametrize("names", list(permutations([each.id for each in NEEDED])))
def test_only_the_allowed_orders_are_right(names: tuple[str, ...]) -> None:
    verdict = grade(CHECK, places(*names), "en")
    assert verdict.is_right == allowed(places(*names))
    assert verdict.is_right == (not feedback(verdict))


NAMES = st.sampled_from([each.id for each in CHECK.lines])


@given(st.dictionaries(NAMES, st.sampled_from(["", "1", "2", "3", "4", "5"])))
def test_every_wrong_order_is_told_something(sent: dict[str, str]) -> None:
    verdict = grade(CHECK, sent, "ja")
    assert verdict.is_right == allowed(sent)
    assert verdict.is_right == (not feedback(verdict) and not remark(verdict))
    assert "code_of" not in str(verdict)


@given(st.dictionaries(NAMES | st.text(max_size=3), st.text(max_size=30)))
def test_no_form_input_is_an_error(sent: dict[str, str]) -> None:
    verdict = grade(CHECK, sent, "en")
    assert verdict.is_right or feedback(verdict) or remark(verdict)
    assert 0 <= verdict.num_right <= verdict.num_items == 6
