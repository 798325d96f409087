"""Malformed checks: each mistake gives one clear error at its place, never a traceback.

In what is written instead, § marks the place that the error must name; it is taken out.
"""

from itertools import chain, combinations, permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.lessons import check_folder
from tests.lessons.checks_sample import CHECKED, MISCONCEPTIONS, folder_with_checks

SUM = "- {id: sum, text: {ja: 足す, en: It adds}}"
RANK = "- id: rank\n"
TOLERANCE = "tolerance: {relative: 0.05}"
UNITS = "units: {B: 0.0009765625, MiB: 1024}"


def span(first: str, last: str) -> str:
    """What the sample holds from one text to another, with both."""
    begin = CHECKED.index(first)
    return CHECKED[begin : CHECKED.index(last, begin) + len(last)]


def lines(*entries: str) -> str:
    """Other lines to put in order, each from its id on."""
    return "".join(f"            - {{id: {entry}}}\n" for entry in entries)


LINES = CHECKED[CHECKED.index("            - {id: start") : CHECKED.index("          distractors:")]
CODE_TO_CALL = span("          code: |", "answers: [all_reduce, reduce]")

KEYS: list[tuple[str, str, str, str]] = [
    # name, what is replaced, with what, what the message says
    ("text for a number", "answer: 2\n", 'answer: §"2"\n', "`answer` must be a number"),
    ("truth for a number", "answer: 2\n", "answer: §true\n", "`answer` must be a number"),
    ("endless number", "answer: 2\n", "answer: §1e999\n", "`answer` must be a number of ordinary"),
    ("endless wrong number", "value: 8", "value: §-1e999", "must be a number of ordinary size"),
    ("endless tolerance", TOLERANCE, "tolerance: {absolute: §1e999}", "number of ordinary size"),
    ("negative tolerance", TOLERANCE, "tolerance: {absolute: §-0.5}", "must be 0 or more"),
    ("tolerance above all", TOLERANCE, "tolerance: {relative: §1.5}", "must be 1 or less"),
    ("two tolerances", TOLERANCE, "tolerance: §{relative: 0.1, absolute: 1}", "exactly one of"),
    ("no tolerance", TOLERANCE, "tolerance: §{}", "exactly one of `absolute` and `relative`"),
    ("bare tolerance", TOLERANCE, "tolerance: §0.1",
     "`tolerance` must be a map of keys, like {relative: 0.01}"),
    ("unit of nothing", "MiB: 1024", "MiB: §0", "`MiB` must be more than 0"),
    ("tiny unit", "MiB: 1024", "MiB: §1e-400", "`MiB` must be more than 0"),
    ("text for a unit's size", "MiB: 1024", "MiB: §many", "`MiB` must be a number"),
    ("long unit", "MiB: 1024", f'§{"m" * 21}: 1024', "must have at most 20 characters"),
    ("blank unit", "MiB: 1024", '§" ": 1024', "must not be blank"),
    ("blank own unit", "unit: KiB", 'unit: §" "', "must not be blank"),
    ("text for truth", "ignore_case: true", "ignore_case: §maybe", "must be true or false"),
    ("blank answer", "[all_reduce, reduce]", '[all_reduce, §" "]', "must not be blank"),
    ("no answer", "[all_reduce, reduce]", "§[]", "`answers` must have 1 or more entries"),
    ("endless answer", "[all_reduce, reduce]", f"[all_reduce, §{'a' * 201}]", "at most 200"),
    ("number for an answer", "[all_reduce, reduce]", "[§1]", "entry 1 of `answers` must be text"),
    ("one option", span(SUM, "{en: It copies}}"), f"§{SUM}", "`options` must have 2 or more"),
    ("too many options", SUM,
     "§" + SUM + "".join(f"\n            - {{id: o{n}, text: {{en: O}}}}" for n in range(10)),
     "`options` must have at most 12 entries"),
    ("no number", span("id: bytes", "answer: 2\n"), "§id: bytes\n          prompt: {en: How?}\n",
     "the key `answer` is missing here: write `answer: 0.5`"),
    ("no right options", span("id: some", "answers: [barrier, reduce]\n"),
     "§" + span("id: some", "answers: [").removesuffix("answers: [") + "\n",
     "the key `answers` is missing here: write `answers: [...]`"),
    ("unknown key", "misconception: sum-is-mean", "§misconceptoin: sum-is-mean",
     "did you mean `misconception`?"),
    ("unknown kind", "- numeric:", "- §numerical:", "did you mean `numeric`?"),
]  # fmt: skip

CHOICES: list[tuple[str, str, str, str]] = [
    ("repeated option", "{id: copy, text", "{id: §sum, text", "option id `sum` is used twice"),
    ("repeated option of several", RANK, "- id: §reduce\n", "option id `reduce` is used twice"),
    ("answer to nothing", "answer: sum", "answer: §summ",
     "`answer` must be one of the options: sum, mean, copy"),
    ("feedback to the right option", SUM,
     "- {id: sum, text: {en: It adds}, §feedback: {en: Yes}}",
     "this is the right option: what to say belongs into `explanation`"),
    ("right misconception", SUM,
     "- {id: sum, text: {en: It adds}, §misconception: one-process}", "into `explanation`"),
    ("one of the answers to nothing", "[barrier, reduce]", "[barrier, §send]",
     "`answers` must be of the options: barrier, reduce, rank"),
    ("answer that stands twice", "[barrier, reduce]", "[barrier, reduce, §barrier]",
     "the answer `barrier` is here twice: keep one"),
    ("option with the page's own id", RANK, "- id: §answered\n", "belongs to the page"),
    ("id of another check", "id: some", "id: §one", "cell or check id `one` is used twice"),
]  # fmt: skip

ORDERS: list[tuple[str, str, str, str]] = [
    ("repeated line", "{id: stop,", "{id: §body,", "the line id `body` is used twice"),
    ("distractor named as a line", "- id: spawn", "- id: §loop", "line id `loop` is used twice"),
    ("after nothing", "after: [start]", "after: [§begin]",
     "`after` must name other lines: start, loop, body, stop"),
    ("after itself", "after: [start]", "after: [start, §loop]", "cannot stand after itself"),
    ("after a distractor", "after: [start]", "after: [§spawn]", "`spawn` is a distractor"),
    ("two wait for each other", LINES,
     lines("a, code: x, after: [b]", "b, code: y, after: [§a]"),
     "these lines wait for one another: a -> b -> a; take one `after` out"),
    ("three wait for one another", LINES,
     lines("z, code: w", "a, code: x, after: [z, c]", "b, code: y, after: [§a]",
           "c, code: z, after: [z, b]"), "wait for one another: a -> c -> b -> a"),
    ("lines in a wrong order", LINES, lines("a, code: x, after: [§b]", "b, code: y"),
     "`b` stands below this line: write `lines` in a right order"),
    ("no Python", "dist.destroy_process_group()", '§"dist.destroy("',
     "in the order of `lines` this is not Python: '('"),
    ("no Python in lines of many lines", LINES,
     lines('a, code: "x = 1\\ny = 2\\n"', 'b, code: §"z = 3\\nw = = 4", after: [a]'),
     "in the order of `lines` this is not Python: invalid syntax"),
    ("body that may lose its header", LINES,
     lines("a, code: x = 1", 'b, code: "while x:", after: [a]', 'c, code: §"  x -= 1", after: [a]'),
     "`after` allows the order a, c, b, where this is not Python: unexpected indent"),
    ("body that may come first", LINES, lines('a, code: "while x:"', 'b, code: §"  x -= 1"'),
     "`after` allows the order b, a, where this is not Python: unexpected indent"),
    ("decorator that may come last", LINES,
     lines('a, code: §"@wraps"', 'b, code: "def f(): pass"'),
     "`after` allows the order b, a, where this is not Python: invalid syntax"),
]  # fmt: skip

NUMBERS: list[tuple[str, str, str, str]] = [
    ("relative to zero", "answer: 2\n          tolerance: {relative",
     "answer: 0\n          tolerance: {§relative", "relative to the answer 0: write `absolute`"),
    ("wrong number that is right", "value: 8", "value: §2.1", "within the tolerance of `answer`"),
    ("number on the brink", "value: 8", "value: §1.9", "within the tolerance of `answer`"),
    ("wrong number twice", "value: 0.5", "value: §8.0", "the wrong number 8 is here twice"),
    ("unit of itself", "MiB: 1024", "§KiB: 1", "`KiB` is `unit` already: take it out of `units`"),
    ("unit of itself, spaced", "MiB: 1024", '§"Ki B": 1', "`Ki B` is `unit` already"),
    ("unit twice", "MiB: 1024", '§" B": 1', "the unit ` B` is here twice: keep one"),
    ("units of nothing", f"unit: KiB\n          {UNITS}", f"§{UNITS}",
     "`units` are counted in `unit`: write the unit of `answer`"),
]  # fmt: skip

GAPS: list[tuple[str, str, str, str]] = [
    ("repeated gap", "{id: op, answers", "{id: §call, answers", "the gap id `call` is used twice"),
    ("gap nowhere", "- {id: op, answers: [SUM], ignore_case: true}",
     "- {id: op, answers: [SUM]}\n            - {id: §other, answers: [SUM]}",
     "the gap `other` is not in `code`: write `{{other}}` where it is"),
    ("misspelt gap", "- id: call\n", "- id: §cal\n", "the gap `cal` is not in `code`"),
    ("wrong text that is right", "[all-reduce]", "[§reduce]", "`reduce` is among the right"),
    ("wrong text that is right, in blanks", "[all-reduce]", '[§" reduce "]', "the right `answers`"),
    ("wrong text twice", "[all-reduce]", "[§average]", "the wrong text `average` is here twice"),
    ("right but for its case", "answers: [SUM], ignore_case: true",
     "answers: [SUM], ignore_case: true, wrong: [{answers: [§sum], feedback: {en: No}}]",
     "`sum` is among the right `answers` of this gap too: keep one"),
    ("twice but for its case", "answers: [SUM], ignore_case: true",
     "answers: [SUM], ignore_case: true,\n"
     "               wrong: [{answers: [avg, §AVG], feedback: {en: No}}]", "is here twice"),
    ("gap that stands twice", span("dist.{{call}}", "- id: call"),
     span("dist.{{call}}", "- id: call").replace("x = ", "").replace("(y,", "({{call}},")
     .replace("- id: ", "- id: §"), "the gap `call` is 2 times in `code`: declare a gap for each"),
    ("no Python around the gaps", CODE_TO_CALL,
     CODE_TO_CALL.replace("|", "§|").replace(", {{op}})", ", {{op}}"),
     "`code` with the first answer in each gap is not Python: line 2: '(' was never closed"),
    ("no Python in a gap", CODE_TO_CALL,
     CODE_TO_CALL.replace("|", "§|").replace("[all_reduce,", "[all reduce,"),
     "first answer in each gap is not Python: line 2: invalid syntax"),
]  # fmt: skip

SHOWN: list[tuple[str, str, str, str]] = [
    ("of an option", "misconception: sum-is-mean", "misconception: §sum-is-meen",
     "there is no misconception `sum-is-meen`: did you mean `sum-is-mean`?"),
    ("of one of several options", "collective-arguments", "§collective-argument",
     "did you mean `collective-arguments`?"),
    ("of a distractor", "en: Ranks are processes.}\n              misconception: one-process",
     "en: Ranks are processes.}\n              misconception: §one-processes",
     "did you mean `one-process`?"),
    ("of a number", "That is all ranks.}\n              misconception: one-process",
     "That is all ranks.}\n              misconception: §zzzzzzzz", "into misconceptions.yaml"),
    ("of a text", "no such call.}\n                  misconception: sum-is-mean",
     "no such call.}\n                  misconception: §sum-is-main",
     "there is no misconception `sum-is-main`: did you mean `sum-is-mean`?"),
]  # fmt: skip

ALL = [*KEYS, *CHOICES, *ORDERS, *NUMBERS, *GAPS, *SHOWN]


@pytest.mark.parametrize(
    ("old", "new", "says"), [row[1:] for row in ALL], ids=[row[0] for row in ALL]
)
def test_mistake_is_reported_once_at_its_line_and_column(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert old in CHECKED
    marked = CHECKED.replace(old, new, 1)
    before, mark, after = marked.partition("§")
    assert mark
    folder = folder_with_checks(tmp_path, before + after)
    (problem,) = check_folder(folder)
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert says in problem.message
    assert (problem.file, problem.line, problem.column) == ("lesson.yaml", *place)


def compiles(code: str) -> bool:
    try:
        compile(code, "order", "exec")
    except SyntaxError:
        return False
    return True


def test_after_says_enough_exactly_where_every_order_is_python(tmp_path: Path) -> None:
    folder = folder_with_checks(tmp_path)
    codes = ["if x:", "    y()", "else:", "    z()"]
    pairs = list(combinations(range(len(codes)), 2))
    outcomes = set()
    for chosen in chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1)):
        allowed = [
            order
            for order in permutations(range(len(codes)))
            if all(order.index(upper) < order.index(lower) for upper, lower in chosen)
        ]
        is_right = all(compiles("\n".join(codes[n] for n in order)) for order in allowed)
        entries = [
            f"l{n}, code: '{code}', after: [{', '.join(f'l{u}' for u, low in chosen if low == n)}]"
            for n, code in enumerate(codes)
        ]
        lesson = CHECKED.replace(LINES, lines(*entries), 1)
        (folder / "lesson.yaml").write_text(lesson, encoding="utf-8")
        assert (check_folder(folder) == []) == is_right, entries
        outcomes.add(is_right)
    assert outcomes == {True, False}


def test_two_cycles_are_two_mistakes(tmp_path: Path) -> None:
    code = ["a, code: x, after: [b]", "b, code: x, after: [a]", "c, code: x, after: [d, a]"]
    lesson = CHECKED.replace(LINES, lines(*code, "d, code: x, after: [c]"), 1)
    said = [problem.message for problem in check_folder(folder_with_checks(tmp_path, lesson))]
    assert [message.split(": ")[1].split(";")[0] for message in said] == [
        "a -> b -> a",
        "c -> d -> c",
    ]


def test_misconception_that_stands_twice_is_one_mistake(tmp_path: Path) -> None:
    twice = MISCONCEPTIONS + "  - {id: sum-is-mean, title: {en: Once more}}\n"
    (problem,) = check_folder(folder_with_checks(tmp_path, misconceptions=twice))
    assert str(problem) == (
        "misconceptions.yaml:6:10: the misconception id `sum-is-mean` is used twice"
    )


def test_mistake_in_the_misconceptions_is_not_also_one_of_each_lesson(tmp_path: Path) -> None:
    wrong = MISCONCEPTIONS.replace("title: {en:", "titel: {en:", 1)
    problems = check_folder(folder_with_checks(tmp_path, misconceptions=wrong))
    assert {problem.file for problem in problems} == {"misconceptions.yaml"}
    assert "misconceptions.yaml:5:5: unknown key `titel`: did you mean `title`?" in [
        str(problem) for problem in problems
    ]


def test_misconceptions_with_another_ending_are_not_passed_over(tmp_path: Path) -> None:
    folder = folder_with_checks(tmp_path)
    (folder / "misconceptions.yaml").rename(folder / "misconceptions.yml")
    problems = check_folder(folder)
    assert ("misconceptions.yml", "name it .yaml") in [(p.file, p.message) for p in problems]


def test_course_may_have_the_name_of_the_catalogue(tmp_path: Path) -> None:
    folder = folder_with_checks(tmp_path)
    course = folder / "courses" / "misconceptions.yaml"
    course.write_text("id: misconceptions\n", encoding="utf-8")
    assert {problem.file for problem in check_folder(folder)} == {"courses/misconceptions.yaml"}


@pytest.mark.parametrize(
    "code",
    ["-" * 7_990 + "1", "a" + ".a" * 3_900, "(" * 3_900, "f'{" * 2_600, "not " * 1_990 + "1"],
)
def test_code_that_is_nested_without_end_is_no_traceback(tmp_path: Path, code: str) -> None:
    nested = lines(f'a, code: "{code}"', f'b, code: "{code}", after: [a]')
    folder = folder_with_checks(tmp_path, CHECKED.replace(LINES, nested, 1))
    assert all(problem.file == "lesson.yaml" for problem in check_folder(folder))


@given(st.integers(0, len(CHECKED)), st.sampled_from("\t\n:-{}[]'\"#&*!|>%@`,? \0019"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_stray_character_is_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, place: int, stray: str
) -> None:
    text = CHECKED[:place] + stray + CHECKED[place:]
    folder = folder_with_checks(tmp_path_factory.mktemp("stray"), text)
    count = text.count("\n") + 1
    assert all(1 <= problem.line <= count for problem in check_folder(folder))
