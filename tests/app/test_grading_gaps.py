"""Grading of code with gaps: the same Python is the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.grading import Verdict, grade
from app.lessons import FillCheck, Gap, Localized, WrongText


def text(en: str) -> Localized:
    return Localized(en=en, ja=f"{en} ja")


def fill(*gaps: Gap) -> FillCheck:
    return FillCheck(
        id="wrap",
        prompt=text("Fill it in."),
        pieces=("model = ", *gaps, "\n"),
        explanation=text("So it is wrapped."),
    )


def gap(*answers: str, ignore_case: bool = False, wrong: tuple[WrongText, ...] = ()) -> Gap:
    return Gap(id="gap", answers=answers, ignore_case=ignore_case, wrong=wrong)


CHECK = fill(
    Gap(id="backend", answers=("'gloo'", "gloo_backend"), ignore_case=True, wrong=()),
    Gap(
        id="ids",
        answers=("device_ids=[0]",),
        ignore_case=False,
        wrong=(
            WrongText(
                answers=frozenset({"device_ids = 0", "device_ids=rank"}),
                feedback=text("It takes a list."),
                misconception="one-device",
            ),
        ),
    ),
)


def said(verdict: Verdict, item_id: str) -> str | None:
    item = verdict.item(item_id)
    assert item is not None
    return item.feedback.value if item.feedback else None


def is_right(written: str, *answers: str, ignore_case: bool = False) -> bool:
    return grade(fill(gap(*answers, ignore_case=ignore_case)), {"gap": written}, "en").is_right


def test_right_texts_get_the_explanation() -> None:
    verdict = grade(CHECK, {"backend": '"GLOO"', "ids": " device_ids = [ 0 ] "}, "ja")
    assert (verdict.is_right, verdict.num_right, verdict.num_items) == (True, 2, 2)
    assert verdict.explanation is not None
    assert verdict.explanation.value == "So it is wrapped. ja"
    assert [item.feedback for item in verdict.items] == [None, None]


def test_wrong_text_gets_the_feedback_written_for_it() -> None:
    verdict = grade(CHECK, {"backend": "gloo_backend", "ids": "device_ids=0"}, "en")
    assert [item.is_right for item in verdict.items] == [True, False]
    assert said(verdict, "ids") == "It takes a list."
    assert verdict.misconceptions == ("one-device",)
    assert verdict.explanation is None


def test_other_wrong_text_gets_a_general_word() -> None:
    verdict = grade(CHECK, {"backend": "nccl", "ids": "Device_ids=[0]"}, "en")
    assert not any(item.is_right for item in verdict.items)
    for item_id in ("backend", "ids"):
        assert (said(verdict, item_id) or "").startswith("This does not fit here")


@pytest.mark.parametrize("sent", [{}, {"ids": ""}, {"ids": " 　\t"}, {"other": "device_ids=[0]"}])
def test_empty_gap_is_no_answer(sent: dict[str, str]) -> None:
    ids = grade(CHECK, sent, "en").item("ids")
    assert ids is not None
    assert not ids.is_given
    assert said(grade(CHECK, sent, "en"), "ids") == "Nothing is written yet."


def test_long_text_is_no_answer() -> None:
    assert is_right("x" * 200, "x" * 200)
    for length in (201, 10**6):
        verdict = grade(fill(gap("x" * length)), {"gap": "x" * length}, "en")
        assert not verdict.items[0].is_given
        assert (said(verdict, "gap") or "").startswith("This is too long")


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("device_ids = [ 0 ]", "device_ids=[0]"),
        ("dist.all_reduce( x )", "dist . all_reduce(x)"),
        ("'nccl'", '"nccl"'),
        ("'''nccl'''", '"nccl"'),
        ("R'\\d'", 'r"\\d"'),
        ("u'x'", '"x"'),
        ("'it\\'s'", '"it\'s"'),
        ("f'{rank} of'", 'f"{rank} of"'),
        ("f( x,", "f(x,"),
        ("x )", "x)"),
        ("(a,\nb)", "(a, b)"),
        ("a\r\nb", "a\nb"),
        ("if  rank==0 :", "if rank == 0:"),
        ("a  ?  'b", "a ? 'b"),
        ("$ 'x", '$ "x'),
    ],
)
def test_same_python_is_the_same_text(written: str, answer: str) -> None:
    assert is_right(written, answer)
    assert is_right(answer, written)


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("not_x", "not x"),
        ("notx", "not x"),
        ("'a b'", "'a  b'"),
        ("'a'", "a"),
        ("f'a'", "'a'"),
        ("b'a'", "'a'"),
        ("'it's'", '"it\'s"'),
        ("r'\\''", "'\\''"),
        ("'\\n'", "'n'"),
        ("x\\", "x"),
        ("x  # of all", "x"),
        ("a\nb", "a b"),
        ("if a:\n b\nc", "if a:\n b\n c"),
        ("x)", "x"),
        ("x(", "x"),
        ("Rank", "rank"),
        ("1e-3", "1e-4"),
        ("== 0", "= = 0"),
    ],
)
def test_other_python_is_another_text(written: str, answer: str) -> None:
    assert not is_right(written, answer)
    assert not is_right(answer, written)


def test_what_makes_tokenizers_fail_is_no_error() -> None:
    for written in (" a.0\u3000\n==\0", "a\0\n\0", "é=f#\ré", "\ta\n b", " a:\n\tb\n        c"):
        assert not is_right(written, "a")
        assert is_right(written, written)


def test_case_is_ignored_where_the_author_says_so() -> None:
    assert is_right("NCCL", "nccl", ignore_case=True)
    assert not is_right("NCCL", "nccl")
    assert not is_right("NCCL2", "nccl", ignore_case=True)


def test_wrong_texts_are_compared_like_right_ones() -> None:
    wrong = WrongText(answers=frozenset({"f('NCCL')"}), feedback=text("No."), misconception=None)
    verdict = grade(fill(gap("x", ignore_case=True, wrong=(wrong,))), {"gap": 'F( "nccl" )'}, "en")
    assert said(verdict, "gap") == "No."


CODE_LIKE = st.text(alphabet="ab01 \t\n\r\\'\"#()[]{}:=.,!fr$?\0　é", max_size=30)


@given(CODE_LIKE | st.text(max_size=100))
def test_every_text_is_right_where_it_is_the_answer(answer: str) -> None:
    verdict = grade(fill(gap("something_else", answer)), {"gap": f" {answer}\n"}, "en")
    assert verdict.is_right == (answer.strip() != "")


@given(CODE_LIKE | st.text(), CODE_LIKE | st.text(), st.booleans())
def test_order_of_comparing_does_not_matter(one: str, other: str, ignore_case: bool) -> None:
    if one.strip() and other.strip():
        assert is_right(one, other, ignore_case=ignore_case) == is_right(
            other, one, ignore_case=ignore_case
        )


@given(st.dictionaries(st.sampled_from(["backend", "ids"]) | st.text(), CODE_LIKE | st.text()))
def test_no_form_input_is_an_error(sent: dict[str, str]) -> None:
    verdict = grade(CHECK, sent, "en")
    assert not verdict.is_right
    for item in verdict.items:
        assert item.is_right or item.feedback is not None
        assert "device_ids" not in str(item.feedback)
        assert "gloo" not in str(item.feedback)


@given(st.text(st.characters(exclude_categories=()), min_size=1))
def test_no_character_is_an_error(written: str) -> None:
    assert not is_right(written, "no_such_text_is_ever_drawn")
