"""Malformed lesson files: each gives one clear error at its place, never a traceback."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.lessons import LessonError, MatchCheck, check_folder, load_catalogue

COURSE = """\
id: course
title: {ja: 題, en: Title}
summary: {ja: 要約, en: Summary}
lessons:
  - id: lesson
    title: {ja: 題, en: Title}
    summary: {ja: 要約, en: Summary}
"""

LESSON = """\
id: lesson
course: course
title: {ja: 題, en: Title}
subtitle: {ja: 副題, en: Subtitle}
minutes: 5
objectives:
  - {ja: 目標, en: Objective}
sections:
  - id: first
    title: {ja: 最初, en: First}
    blocks:
      - prose: {ja: 文。, en: Words.}
      - cell:
          id: cell
          title: {ja: 実行, en: Run it}
          program: programs/a.py
          ranks: {default: 4, min: 2, max: 8}
          panels: [statistics, output]
      - match:
          id: match
          prompt: {ja: 問い, en: Question}
          choices:
            - {id: one, text: {ja: 一, en: One}}
            - {id: two, text: {ja: 二, en: Two}}
          items:
            - id: a
              text: {ja: あ, en: A}
              answer: one
              explanation: {ja: 理由, en: Because}
              feedback:
                two: {ja: 違う, en: No}
            - id: b
              text: {ja: い, en: B}
              answer: two
              explanation: {ja: 理由, en: Because}
faq:
  - id: free
    question: {ja: 無料, en: Free?}
    answer: {ja: はい, en: Yes}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "courses").mkdir()
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "a.py").write_text("print(1)\n")
    (tmp_path / "courses" / "course.yaml").write_text(COURSE, encoding="utf-8")
    (tmp_path / "lesson.yaml").write_text(LESSON, encoding="utf-8")
    return tmp_path


def test_the_sample_itself_is_right(folder: Path) -> None:
    assert check_folder(folder) == []
    lesson = load_catalogue(folder).lesson("lesson")
    assert lesson.cell("cell").ranks.max == 8
    check = lesson.check("match")
    assert isinstance(check, MatchCheck)
    assert check.items[1].answer_choice_id == "two"


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"

WRONG: list[tuple[str, str, str, int, str]] = [
    # name, what is replaced, with what, line, what the message says
    ("unknown key", "minutes: 5", "minuets: 5\nminutes: 5", 5, "did you mean `minutes`"),
    ("unknown block", "- prose:", "- prosa:", 12, "did you mean `prose`"),
    ("missing key", "minutes: 5\n", "", 1, "`minutes` is missing"),
    ("text for a number", "minutes: 5", "minutes: soon", 5, "whole number"),
    ("float for a number", "minutes: 5", "minutes: 5.5", 5, "whole number"),
    ("truth for text", "en: Subtitle", "en: true", 4, "must be text"),
    ("text for a map", "subtitle: {ja: 副題, en: Subtitle}", "subtitle: Sub", 4, "map of keys"),
    ("no language", "{ja: 副題, en: Subtitle}", "{}", 4, "at least one of"),
    ("third language", "{ja: 副題, en: Subtitle}", "{fr: Sous-titre}", 4, "keys here are ja, en"),
    ("id with spaces", "id: first", "id: my first", 9, "lower-case letters"),
    ("other file name", "id: lesson\n", "id: other\n", 1, "must be named other.yaml"),
    ("unknown course", "course: course", "course: nowhere", 2, "there is no such course"),
    ("repeated cell id", "id: match", "id: cell", 20, "used twice"),
    ("repeated choice", "{id: two, text: {ja: 二, en: Two}}",
     "{id: two, text: {en: Two}}\n            - {id: one, text: {en: 1st}}", 25, "used twice"),
    ("ranks out of order", "default: 4, min: 2", "default: 1, min: 2", 17, "must hold"),
    ("too many ranks", "max: 8", "max: 80", 17, "must be 8 or less"),
    ("unknown panel", "[statistics, output]", "[statistic, output]", 18, "must be one of"),
    ("no such program", "programs/a.py", "programs/b.py", 16, "no file programs/b.py"),
    ("program outside", "programs/a.py", "../secret.py", 16, "without .."),
    ("absolute program", "programs/a.py", "/etc/passwd", 16, "without .."),
    ("program of another kind", "programs/a.py", "lesson.yaml", 16, ".py file"),
    ("answer to nothing", "answer: one", "answer: three", 28, "one of the choices: one, two"),
    ("feedback to nothing", "two: {ja: 違う", "six: {ja: 違う", 31, "no choice `six`"),
    ("feedback to the right one", "two: {ja: 違う", "one: {ja: 違う", 31, "`explanation`"),
    ("two keys in a block", "- prose: {ja: 文。",
     "- snippet: {source: x}\n        prose: {ja: 文。", 12, "exactly one of"),
    ("duplicate key", "minutes: 5", "minutes: 5\nminutes: 6", 6, "`minutes` is here twice"),
    ("tab", "minutes: 5", "\tminutes: 5", 5, "tabs"),
    ("bad indent", "  - {ja: 目標, en: Objective}", "  - {ja: 目標\n- x", 9, "is not YAML"),
    ("unclosed quote", "en: Title}", 'en: "Title}', 3, "is not YAML"),
    ("alias bomb", "id: lesson\n", BOMB + "id: lesson\n", 1, "anchors and aliases"),
    ("deep nesting", "minutes: 5", "minutes: " + "[" * 200 + "]" * 200, 5, "nested too deeply"),
    ("only a list", LESSON, "- a\n- b\n", 1, "begin with keys"),
    ("empty file", LESSON, "", 1, "begin with keys"),
    ("control character", "en: Subtitle", "en: Sub\x07title", 4, "U+0007"),
    ("escaped NUL", "en: Subtitle", r'en: "Sub\0title"', 4, "U+0000"),
    ("half a character", "en: Subtitle", r'en: "\ud800"', 4, "U+D800"),
    ("tag that would run code", "minutes: 5",
     "minutes: !!python/object/apply:os.getpid []", 5, "take out `!!python/object"),
    ("tag of a wrong kind", "minutes: 5", "minutes: !!bool maybe", 5, "take out `!!bool`"),
    ("merge key", "minutes: 5", "<<: {minutes: 5}\nminutes: 5", 5, "unknown key `<<`"),
    ("key that is a list", "minutes: 5", "[a, b]: 1\nminutes: 5", 5, "a key must be one word"),
    ("key that is a number", "minutes: 5", "1: 1\nminutes: 5", 5, "unknown key `1`"),
    ("second document", "    answer: {ja: はい, en: Yes}\n", "    answer: {en: Yes}\n---\nid: x\n",
     40, "take out this `---`"),
    ("huge number", "minutes: 5", "minutes: " + "9" * 9_999, 5, "whole number"),
    ("nothing for a number", "minutes: 5", "minutes:", 5, "whole number"),
    ("nothing for prose", "- prose: {ja: 文。, en: Words.}", "- prose:", 12, "exactly one of"),
    ("blank text", "en: Subtitle", 'en: " "', 4, "must not be blank"),
    ("empty list", "objectives:\n  - {ja: 目標, en: Objective}", "objectives: []", 6, "1 or more"),
    ("nothing in a list", "- {ja: 目標, en: Objective}", "-", 7, "entry 1 of `objectives`"),
    ("endless program name", "programs/a.py", f"{'a' * 5_000}.py", 16, "at most 200"),
    ("endless brackets", "en: Words.", "en: " + "[" * 90_000, 12, "nested too deeply"),
    ("endless prose", "en: Words.", f"en: {'a* ' * 30_000}", 12, "at most 8000"),
    ("endless list", "minutes: 5", f"minutes: [{'x, ' * 60_000}]", 5, "at most 10000 values"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "says"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_mistake_is_reported_once_at_its_line(
    folder: Path, old: str, new: str, line: int, says: str
) -> None:
    path = folder / "lesson.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    problems = check_folder(folder)
    assert len(problems) == 1, problems
    assert says in problems[0].message
    assert (problems[0].file, problems[0].line) == ("lesson.yaml", line), problems[0]
    assert problems[0].column >= 1
    with pytest.raises(LessonError):
        load_catalogue(folder)


def test_other_encodings_are_refused(folder: Path) -> None:
    (folder / "lesson.yaml").write_bytes(LESSON.encode("shift_jis"))
    (problem,) = check_folder(folder)
    assert "not UTF-8" in problem.message


def test_large_file_is_refused_unparsed(folder: Path) -> None:
    (folder / "lesson.yaml").write_text("# " + "x" * 10_000_000)
    (problem,) = check_folder(folder)
    assert "too long" in problem.message


def test_file_with_another_ending_is_not_passed_over(folder: Path) -> None:
    (folder / "lesson.yaml").rename(folder / "lesson.yml")
    (problem,) = check_folder(folder)
    assert (problem.file, problem.message) == ("lesson.yml", "name it .yaml")


def test_mistake_in_a_course_is_not_also_one_of_its_lessons(folder: Path) -> None:
    (folder / "courses" / "course.yaml").write_text(COURSE.replace("title:", "titel:", 1))
    assert {problem.file for problem in check_folder(folder)} == {"courses/course.yaml"}


def test_missing_key_shows_what_to_write(folder: Path) -> None:
    text = LESSON.replace("subtitle: {ja: 副題, en: Subtitle}\n", "")
    (folder / "lesson.yaml").write_text(text, encoding="utf-8")
    (problem,) = check_folder(folder)
    assert "write `subtitle: {ja: ..., en: ...}`" in problem.message


def test_words_that_other_yaml_takes_for_values_stay_text(folder: Path) -> None:
    text = LESSON.replace("{ja: 副題, en: Subtitle}", "{ja: no, en: 2001-01-01}")
    (folder / "lesson.yaml").write_text(text, encoding="utf-8")
    subtitle = load_catalogue(folder).lesson("lesson").subtitle
    assert (subtitle.ja, subtitle.en) == ("no", "2001-01-01")


def test_folded_text_becomes_one_line(folder: Path) -> None:
    text = LESSON.replace(
        "subtitle: {ja: 副題, en: Subtitle}", "subtitle:\n  en: >-\n    One\n    line"
    )
    (folder / "lesson.yaml").write_text(text, encoding="utf-8")
    assert load_catalogue(folder).lesson("lesson").subtitle.en == "One line"


@given(st.text(max_size=200) | st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_is_a_traceback(folder: Path, content: str | bytes) -> None:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    (folder / "lesson.yaml").write_bytes(raw)
    assert all(problem.file == "lesson.yaml" for problem in check_folder(folder))


@given(st.integers(0, len(LESSON)), st.sampled_from("\t\n:-{}[]'\"#&*!|>%@`,? \0"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_stray_character_is_a_traceback(folder: Path, place: int, stray: str) -> None:
    text = LESSON[:place] + stray + LESSON[place:]
    (folder / "lesson.yaml").write_text(text, encoding="utf-8", newline="")
    lines = text.count("\n") + 1
    assert all(1 <= problem.line <= lines for problem in check_folder(folder))


def test_program_that_does_not_compile_names_its_line(folder: Path) -> None:
    (folder / "programs" / "a.py").write_text("x = 1\ny = = 2\n")
    (problem,) = check_folder(folder)
    assert "a.py, line 2" in problem.message


def test_link_out_of_the_folder_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret.py"
    secret.write_text("print(1)\n")
    (folder / "programs" / "a.py").unlink()
    (folder / "programs" / "a.py").symlink_to(secret)
    (problem,) = check_folder(folder)
    assert "leads out" in problem.message


def test_all_mistakes_of_all_files_are_listed(folder: Path) -> None:
    path = folder / "lesson.yaml"
    path.write_text(LESSON.replace("minutes: 5", "minutes: x").replace("id: first", "id: A B"))
    course = folder / "courses" / "course.yaml"
    course.write_text(COURSE + "extra: 1\n")
    files = [(p.file, p.line) for p in check_folder(folder)]
    assert files == [("courses/course.yaml", 8), ("lesson.yaml", 5), ("lesson.yaml", 9)]


@pytest.mark.parametrize(
    "markdown",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        '<img src=x onerror="alert(1)">',
        "![x](https://example.org/pixel.png)",
        "<style>body{display:none}</style>",
        '<p style="color:red">x</p>',
    ],
)
def test_prose_holds_nothing_that_runs_or_loads(folder: Path, markdown: str) -> None:
    path = folder / "lesson.yaml"
    quoted = "'" + markdown.replace("'", "''") + "'"
    path.write_text(LESSON.replace("{ja: 文。, en: Words.}", f"{{en: {quoted}}}"), encoding="utf-8")
    (prose, *_) = load_catalogue(folder).lesson("lesson").sections[0].blocks
    assert prose.kind == "prose"
    html = prose.html.pick("en").value
    for tag in ("<script", "<img", "<style", "<p style", 'href="javascript'):
        assert tag not in html
