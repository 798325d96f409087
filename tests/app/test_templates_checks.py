"""The page of a check of any kind: it is sound, and tells nothing of the key before the answer."""

import re
from dataclasses import replace
from html import escape

import pytest

from app.grading import grade
from app.i18n import LANGUAGES, Language
from app.lessons import (
    Check,
    FillCheck,
    Lesson,
    Localized,
    MatchCheck,
    MultipleCheck,
    NumericCheck,
    OrderCheck,
    SingleCheck,
    load_catalogue,
)
from app.panels.contexts import CheckView
from tests.app.check_samples import RIGHT, WRONG, write_lessons
from tests.app.rendering import ROOT, read, render
from tests.app.test_templates import assert_sound

CATALOGUE = load_catalogue(ROOT / "lessons")
OTHER = Localized(ja="ほかの言葉", en="Other words that are a good deal longer than those before")


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> Language:
    chosen: Language = request.param
    return chosen


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """A lesson with a check of each kind."""
    folder = tmp_path_factory.mktemp("sampled") / "lessons"
    return load_catalogue(write_lessons(folder)).lesson("kinds")


@pytest.mark.parametrize("lesson", CATALOGUE.lessons, ids=lambda lesson: str(lesson.id))
def test_answers_are_not_on_the_page_before_they_are_given(
    lesson: Lesson, language: Language
) -> None:
    for check in lesson.checks():
        view = CheckView(lesson_id=lesson.id, check=check, given={}, verdict=None)
        html = render(language, "_check.html", view=view)
        assert not [words for words in hidden_words(check) if escape(words) in html]
        assert " checked" not in html
        assert " selected" not in html


def hidden_words(check: Check) -> list[str]:
    """What a learner may see only once they have answered."""
    match check:
        case MatchCheck():
            found = [item.explanation for item in check.items]
            found += [said.text for item in check.items for said in item.feedback]
        case SingleCheck() | MultipleCheck():
            found = [check.explanation, *(o.feedback for o in check.options if o.feedback)]
        case OrderCheck():
            found = [check.explanation, *(line.feedback for line in check.lines if line.feedback)]
        case NumericCheck():
            found = [check.explanation, *(wrong.feedback for wrong in check.wrong)]
        case FillCheck():
            found = [check.explanation, *(w.feedback for gap in check.gaps for w in gap.wrong)]
            shown = "".join(piece for piece in check.pieces if isinstance(piece, str))
            answers = [answer for gap in check.gaps for answer in gap.answers]
            found += [Localized(en=answer) for answer in answers if answer not in shown]
    return [words for text in found for words in (text.ja, text.en) if words]


def with_another_key(check: Check) -> Check:
    """The same question with other answers, and other words about them."""
    match check:
        case MatchCheck():
            first, *rest = (replace(i, explanation=OTHER, feedback=()) for i in check.items)
            answers = [c.id for c in check.choices if c.id != first.answer_choice_id]
            return replace(check, items=(replace(first, answer_choice_id=answers[0]), *rest))
        case SingleCheck() | MultipleCheck():
            options = tuple(
                replace(o, feedback=None if o.feedback else OTHER, misconception="other")
                for o in reversed(check.options)
            )
            check = replace(check, options=options, explanation=OTHER)
            if isinstance(check, SingleCheck):
                ids = (o.id for o in options)
                return replace(check, answer_id=next(i for i in ids if i != check.answer_id))
            return replace(check, answer_ids=frozenset(o.id for o in options) - check.answer_ids)
        case OrderCheck():
            lines = [
                replace(n, after=frozenset(), is_needed=not n.is_needed, feedback=OTHER)
                for n in reversed(check.lines)
            ]
            return replace(check, lines=tuple(lines), explanation=OTHER)
        case NumericCheck():
            other = replace(check, answer=-check.answer * 1e9 + 1, tolerance=7.5)
            return replace(other, wrong=(), explanation=OTHER)
        case FillCheck():
            pieces = tuple(
                piece
                if isinstance(piece, str)
                else replace(piece, answers=("other" * 20,), ignore_case=True, wrong=())
                for piece in check.pieces
            )
            return replace(check, pieces=pieces, explanation=OTHER)


def view_before(check: Check) -> CheckView:
    return CheckView(lesson_id="x", check=check, given={}, verdict=None)


def test_page_of_a_check_is_the_same_whatever_its_answer_is(
    language: Language, sampled: Lesson
) -> None:
    for check in (*sampled.checks(), *(c for lesson in CATALOGUE.lessons for c in lesson.checks())):
        other = with_another_key(check)
        assert other != check
        page, of_other = (
            render(language, "_check.html", view=view_before(one)) for one in (check, other)
        )
        assert page == of_other


def test_wrong_answer_shows_what_is_said_to_it_and_nothing_else(
    language: Language, sampled: Lesson
) -> None:
    for check in sampled.checks():
        verdict = grade(check, WRONG[check.id], language)
        said = {item.feedback.value for item in verdict.items if item.feedback}
        view = replace(view_before(check), given=WRONG[check.id], verdict=verdict)
        html = render(language, "_check.html", view=view)
        assert all(escape(words) in html for words in said)
        given = set(WRONG[check.id].values())
        silent = [words for words in hidden_words(check) if words not in said | given]
        assert [words for words in silent if escape(words) in html] == []


def test_checks_of_every_kind_are_sound_before_and_after_answers(
    language: Language, sampled: Lesson
) -> None:
    assert {check.kind for check in sampled.checks()} == {
        *("single", "multiple", "match", "order", "numeric", "fill"),
    }
    for given in ({}, RIGHT, WRONG):
        parts = []
        for check in sampled.checks():
            view = view_before(check)
            if given:
                verdict = grade(check, given[check.id], language)
                view = replace(view, given=given[check.id], verdict=verdict)
            parts.append(render(language, "_check.html", view=view))
        document = read("".join(parts))
        assert_sound(document)
        assert len(set(document.values("aria-labelledby"))) == len(
            document.values("aria-labelledby")
        )


def test_gaps_stand_in_the_code_where_they_are_and_have_one_width(sampled: Lesson) -> None:
    html = render("en", "_check.html", view=view_before(sampled.check("gaps")))
    code = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", html, re.DOTALL)
    assert code is not None
    plain = re.sub(r'<span class="gap-number"[^>]*>\d</span>', "", code[1])
    plain = re.sub(r'<span class="place"><input[^>]*></span>', "_", plain)
    assert plain == escape(
        'total = torch.tensor([float(dist.get_rank())], device="cpu")\n'
        "dist._(total, op=dist.ReduceOp._)\n"
        "if dist.get_rank() == 0:\n"
        '    print(f"{total}", _)'
    ).replace("&quot;", "&#34;")
    gaps = [e.attributes for e in read(html).elements if "gap" in e.attributes.get("class", "")]
    entries = [one for one in gaps if one.get("type") == "text"]
    assert [one["aria-label"] for one in entries] == [f"Gap {n} of 3" for n in (1, 2, 3)]
    assert len({(one["size"], one["maxlength"], one["class"]) for one in entries}) == 1
