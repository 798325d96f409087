"""The lessons that come with the academy: complete, in both languages, and every cell runs."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from app.lessons import Cell, Check, Lesson, Localized, MatchCheck, Prose, Snippet, load_catalogue
from app.schema import lesson_json_schema
from tests.engine.conftest import Runner

LESSONS = Path(__file__).parents[2] / "lessons"
LESSON_ID = "synchronized-batch-norm-and-sharded-state"

SECTIONS = [
    "small-batch-problem",
    "sync-batch-norm",
    "convert-in-one-call",
    "convert-before-wrapping",
    "it-costs-communication",
    "the-memory-wall",
    "shard-the-state",
    "meet-fsdp",
    "gather-just-in-time",
    "zero-stages",
    "pick-the-right-tool",
    "quick-check",
    "recap",
]
SNIPPETS = [
    "model = nn.SyncBatchNorm.convert_sync_batchnorm(model)",
    "model = nn.SyncBatchNorm.convert_sync_batchnorm(model)\n"
    "model = DDP(model, device_ids=[local_rank])",
    "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = FSDP(model)",
]
NARROW_COLUMNS = 48
SENTENCE_ENDS = {"ja": re.compile(r"[。！？]"), "en": re.compile(r"[.!?](?=\s|$|[\"')*])")}


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return load_catalogue(LESSONS).lesson(LESSON_ID)


def test_thirteen_sections_in_the_order_of_the_course(lesson: Lesson) -> None:
    assert [section.id for section in lesson.sections] == SECTIONS
    assert [section.number for section in lesson.sections] == list(range(1, 14))


def test_course_lists_four_lessons_of_which_this_is_the_third() -> None:
    catalogue = load_catalogue(LESSONS)
    course = catalogue.course(catalogue.lesson(LESSON_ID).course_id)
    assert len(course.lessons) == 4
    assert [entry.id for entry in course.lessons].index(LESSON_ID) == 2
    assert catalogue.lesson(LESSON_ID).number == 3


def texts_within(part: object) -> list[Localized]:
    """Every text in a check of any kind, however deep."""
    if isinstance(part, Localized):
        return [part]
    if isinstance(part, tuple):
        return [text for member in part for text in texts_within(member)]
    if is_dataclass(part):
        return [t for field in fields(part) for t in texts_within(getattr(part, field.name))]
    return []


def texts(lesson: Lesson) -> list[Localized]:
    found = [lesson.title, lesson.subtitle, *lesson.objectives]
    found += [section.title for section in lesson.sections]
    for _, block in lesson.blocks():
        match block:
            case Prose():
                found.append(block.source)
            case Snippet() if block.caption is not None:
                found.append(block.caption)
            case Cell():
                found.append(block.title)
            case _ if isinstance(block, Check):
                found += texts_within(block)
    for entry in lesson.faq:
        found += [entry.question, entry.answer]
    return found


def test_texts_of_checks_are_found_however_deep(lesson: Lesson) -> None:
    (check,) = [check for check in lesson.checks() if isinstance(check, MatchCheck)]
    feedback = [f.text for item in check.items for f in item.feedback]
    wanted = [check.prompt, check.choices[-1].text, check.items[0].explanation, *feedback]
    found = texts(lesson)
    assert [text for text in wanted if text not in found] == []


def test_every_text_exists_in_both_languages(lesson: Lesson) -> None:
    assert [t for t in texts(lesson) if t.ja is None or t.en is None] == []
    assert all(
        re.search(r"[ぁ-んァ-ヶ一-龠]|^[A-Za-z0-9 ()_.,/-]+$", t.ja or "") for t in texts(lesson)
    )


@pytest.mark.parametrize("number", range(13))
def test_section_says_one_idea_in_two_to_four_sentences(lesson: Lesson, number: int) -> None:
    prose = [b for b in lesson.sections[number].blocks if isinstance(b, Prose)]
    for language, ends in SENTENCE_ENDS.items():
        text = " ".join((p.source.ja if language == "ja" else p.source.en) or "" for p in prose)
        without_code = re.sub(r"`[^`]*`|\]\([^)]*\)|arXiv:?\s?[\d.]+|\d\.\d", "x", text)
        assert 2 <= len(ends.findall(without_code)) <= 4, (language, text)


def test_the_three_snippets_stand_word_for_word(lesson: Lesson) -> None:
    shown = [block.source for _, block in lesson.blocks() if isinstance(block, Snippet)]
    assert shown == SNIPPETS


def test_five_questions_are_answered(lesson: Lesson) -> None:
    assert len(lesson.faq) == 5


def test_quick_check_matches_techniques_to_purposes(lesson: Lesson) -> None:
    (check,) = [check for check in lesson.checks() if isinstance(check, MatchCheck)]
    assert lesson.section_of(check.id).id == "quick-check"
    assert len(check.items) >= 3
    assert len(check.choices) > len(check.items)
    assert all(item.feedback for item in check.items)


def test_answers_do_not_repeat_the_verdict_of_the_page(lesson: Lesson) -> None:
    (check,) = [check for check in lesson.checks() if isinstance(check, MatchCheck)]
    said = [text for i in check.items for text in (i.explanation, *(f.text for f in i.feedback))]
    verdict = re.compile(r"right\b|not quite|wrong|そのとおり|正解|違います|惜しい", re.IGNORECASE)
    assert [t for t in said if verdict.match(t.ja or "") or verdict.match(t.en or "")] == []


def test_collectives_are_always_in_code_font(lesson: Lesson) -> None:
    prose = [b.source for _, b in lesson.blocks() if isinstance(b, Prose)]
    for text in [*prose, *(entry.answer for entry in lesson.faq)]:
        for words in (text.ja or "", text.en or ""):
            assert not re.search(r"all_|reduce_", re.sub(r"`[^`]*`", "", words)), words


def test_published_schema_is_the_models() -> None:
    published = (LESSONS / "lesson.schema.json").read_text(encoding="utf-8")
    assert published == lesson_json_schema()


@pytest.mark.parametrize("name", sorted(p.name for p in (LESSONS / "programs").glob("*.py")))
async def test_cell_ends_as_the_lesson_expects(run: Runner, lesson: Lesson, name: str) -> None:
    (cell,) = [cell for cell in lesson.cells() if cell.program_name == name]
    for ranks in sorted({cell.ranks.min, cell.ranks.default, cell.ranks.max}):
        ran = await run(cell.source, ranks=ranks)
        assert ran.outcome.status == cell.expect_status, ran.text(0, "stderr")
        assert not ran.outcome.diagnosis
        lines = [line for rank in range(ranks) for line in ran.text(rank).splitlines()]
        assert 0 < max(map(len, lines)) <= NARROW_COLUMNS
