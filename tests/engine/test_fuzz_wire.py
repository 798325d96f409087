"""The wire under hostile bytes: what is taken is what was written, all else is a WireError, and
neither takes long. Depth by ACADEMY_FUZZ, see tests.engine.fuzzing.
"""

import contextlib
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import WireError
from engine.events import Event, Failure, Frame, Outcome, RankEnd
from engine.grading.frames import decode_values
from engine.grading.received import read_export_header
from engine.program import Limits, Program
from engine.reports import CollectiveReport, FailureReport, Report
from engine.supervisor.control import ControlLines, decode_said
from engine.wire import (
    MAX_EVENT_BYTES,
    MAX_FRAMES,
    MAX_NAME,
    MAX_TEXT,
    decode,
    decode_program,
    decode_report,
    encode,
    encode_program,
)
from tests.engine.fuzzing import NAMES, TEXTS, corpus, digging, values_of

REPORTS: dict[type, st.SearchStrategy[Report]] = {
    kind: values_of(kind, **({"group_size": st.none()} if kind is CollectiveReport else {}))
    for kind in get_args(Report)
}
EVENTS: dict[type, st.SearchStrategy[Event]] = {
    kind: values_of(kind, rank=st.integers(-1, 7)) for kind in get_args(Event)
}
PROGRAMS = values_of(
    Program,
    source=TEXTS,
    world_size=st.integers(1, 8),
    name=st.just("a.py"),
    limits=values_of(
        Limits,
        **dict.fromkeys(("wall_s", "peer_grace_s", "stall_s"), st.floats(0.001, 1e6)),
        gpu_memory_fraction=st.floats(0.001, 1.0),
        **{
            name: st.integers(1, 1 << 40)
            for name, hint in Limits.__annotations__.items()
            if hint is int
        },
    ),
    simulated_ranks=st.none(),
    exports=st.just(("model", "loss")),
    evidence_bytes=st.none() | st.integers(0, 1 << 20),
)
BAD_JSON = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1", "true", "null", "1.0", "[]", "{}", '""', '"1"',
    '"\\ud800"', '"\\u0000"', "9" * 400, "-0", "[[[[]]]]", '[true]', '[null,-1,"x"]', "01", "+1",
    '{"kind":"outcome"}',
)  # fmt: skip


def strictly_same(read: object, written: object) -> bool:
    """Whether nothing was made of what was written: no truth of a number, no number of a text.

    What a reader does not know, it leaves out.
    """
    match read, written:
        case dict(), dict():
            known = [name for name in written if name in read]
            return all(strictly_same(read[name], written[name]) for name in known)
        case list(), list():
            return len(read) == len(written) and all(map(strictly_same, read, written))
        case bool(), _:
            return read is written
        case float(), int() | float():
            return not isinstance(written, bool) and read == float(written)
        case None, float():
            return not math.isfinite(written)  # a statistic's, which JSON lacks
    return type(read) is type(written) and read == written


def taken_or_refused(line: bytes, read: Callable[[bytes], Report | Event]) -> bool:
    """Whether it was taken; then its known fields are those that were written."""
    try:
        value = read(line)
    except WireError:
        return False
    known = json.loads(encode(value))
    assert strictly_same(known, json.loads(line))
    assert encode(read(encode(value).encode())) == encode(value)
    return True


# ------------------------------------------------------------------ what goes in comes out
@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.__name__)
def test_every_kind_of_report_survives_the_wire(kind: type) -> None:
    @digging(20)
    @given(REPORTS[kind])
    def check(report: Report) -> None:
        assert decode_report(encode(report).encode()) == report

    check()


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_survives_the_wire(kind: type) -> None:
    @digging(20)
    @given(EVENTS[kind])
    def check(event: Event) -> None:
        line = encode(event)
        assert line.isascii()
        assert "\n" not in line
        assert decode(line) == event

    check()


@digging(40)
@given(PROGRAMS)
def test_every_program_survives_the_wire(program: Program) -> None:
    assert decode_program(encode_program(program)) == program


def test_program_that_no_line_can_carry_is_the_learners_mistake_and_not_the_engines() -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        Program(source="print('\ud800')", world_size=1)


# ------------------------------------------------------------------ hostile bytes
@pytest.mark.parametrize(
    ("folder", "read"),
    [
        ("reports", decode_report),
        ("events", decode),
        ("programs", decode_program),
        ("control", lambda data: ControlLines().feed(data)),
    ],
    ids=["reports", "events", "programs", "control"],
)
def test_hostile_bytes_on_file_are_refused(folder: str, read: Callable[[bytes], object]) -> None:
    for name, data in corpus(folder).items():
        with pytest.raises(WireError) as refused:
            pytest.fail(f"{folder}/{name} was taken: {read(data)}")
        assert len(refused.value.reason) < 300, name


@st.composite
def spoilt(draw: st.DrawFn, lines: st.SearchStrategy[str]) -> bytes:
    """A good line with one thing spoilt."""
    line = draw(lines)
    fields = json.loads(line)
    name = draw(st.sampled_from(sorted(fields)))
    match draw(st.sampled_from(["value", "missing", "more", "cut", "splice"])):
        case "value":
            fields[name] = "@"
            text = json.dumps(fields).replace('"@"', draw(st.sampled_from(BAD_JSON)), 1)
            return text.encode()
        case "missing":
            del fields[name]
        case "more":
            more = draw(st.sampled_from([*fields, "values", "simulated", "__class__"]))
            text = f'{{"{more}":{draw(st.sampled_from(BAD_JSON))},{line[1:]}'
            return text.encode()
        case "cut":
            return line[: draw(st.integers(0, len(line)))].encode()
        case "splice":
            at = draw(st.integers(0, len(line)))
            return line[:at].encode() + draw(st.binary(min_size=1, max_size=6)) + line[at:].encode()
    return json.dumps(fields).encode()


@digging(400)
@given(spoilt(st.one_of(list(REPORTS.values())).map(encode)))
def test_spoilt_report_is_refused_or_taken_as_it_stands(line: bytes) -> None:
    taken_or_refused(line, decode_report)


@digging(400)
@given(spoilt(st.one_of(list(EVENTS.values())).map(encode)))
def test_spoilt_event_is_refused_or_taken_as_it_stands(line: bytes) -> None:
    taken_or_refused(line, decode)


@digging(200)
@given(spoilt(PROGRAMS.map(lambda program: encode_program(program).decode())))
def test_spoilt_program_is_refused_or_a_program(line: bytes) -> None:
    try:
        program = decode_program(line)
    except WireError:
        return
    assert decode_program(encode_program(program)) == program


@digging(200)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_taken_by_every_reader(data: bytes) -> None:
    for read in (decode_report, decode):
        taken_or_refused(data, read)
    for reads in (decode_program, decode_said, decode_values, read_export_header):
        with contextlib.suppress(WireError):
            reads(data)


@digging(100)
@given(st.text(st.characters(), max_size=50))
def test_any_text_is_no_event(text: str) -> None:
    with pytest.raises(WireError):
        decode(text)


# ------------------------------------------------------------------ how long it takes
BOUNDED = """
import resource
from engine.errors import WireError
from engine.wire import decode, decode_report, prepare
prepare()
grown = 700 << 20
with open("/proc/self/statm") as file:
    grown += int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (grown, grown))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
def line(start, part, end, num_bytes):
    return start + part * ((num_bytes - len(start) - len(end)) // len(part)) + end
parts = [
    (b'{"kind":"peak","held":[', b'{},', b'{}]}'),
    (b'{"kind":"collective","group_ranks":[', b'[],', b'[]]}'),
    (b'{"kind":"failure","at_ns":1,"failure":{"frames":[', b'{},', b'{}]}}'),
    (b'{"kind":"statistic","values":[', b'"",', b'1]}'),
    (b'{"kind":"statistic","values":[', b'null,', b'1]}'),
    (b'"statistic"', b'"values":[', b''),
    (b'{"kind":"note","args":{', b'"a":[],', b'"b":[]}}'),
    (b'{"kind":"end","call":1,', b'"call":1,', b'"call":{}}'),
    (b'{"kind":"end","call":', b'9', b'}'),
    (b'', b'[', b''),
    (b'', b'{"kind":', b''),
    (b'{"kind":"', b'\\\\u0000', b'"}'),
]
refused = 0
for read, num_bytes, times in ((decode_report, 1 << 16, 10), (decode, (4 << 20) - 8, 1)):
    for _ in range(times):
        for part in parts:
            try:
                read(line(*part, num_bytes))
            except WireError:
                refused += 1
print(refused)
"""


def test_worst_lines_are_refused_within_little_time_and_memory() -> None:
    """The kernel ends the process at 20 s of CPU and 700 MiB; it took 90 s and 5 GiB once."""
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "132\n"), done.stderr[-500:]


@pytest.mark.parametrize(("char", "most"), [("\U0001f600", 110), ("{", 500)])
def test_largest_outcome_that_ranks_can_bring_about_fits_a_line(char: str, most: int) -> None:
    failure = Failure(
        type=char * 500,
        message=char * 8000,
        line=1,
        column=0,
        end_line=1,
        end_column=1,
        frames=tuple(Frame(line=1, function=char * most) for _ in range(MAX_FRAMES)),
    )
    assert len(failure.message) <= MAX_TEXT
    assert len(failure.type) <= MAX_NAME
    line = encode(FailureReport(at_ns=1, failure=failure))
    raw = json.dumps(json.loads(line), ensure_ascii=False).encode()  # shorter than what is escaped
    assert decode_report(raw) == FailureReport(at_ns=1, failure=failure)
    stack = tuple(Frame(line=10**8, function=char * 200) for _ in range(40))
    outcome = Outcome(
        rank=-1, seq=0, at_ns=1, status="error", diagnosis=(), elapsed_s=1.0, dropped_events=0,
        ranks=tuple(
            RankEnd(rank=r, exit=1, cpu_s=1.0, peak_bytes=1, stack=stack, failure=failure)
            for r in range(8)
        ),
    )  # fmt: skip
    assert len(encode(outcome)) < MAX_EVENT_BYTES
    assert decode(encode(outcome)) == outcome


# ------------------------------------------------------------------ init's pipe
@digging(100)
@given(
    st.lists(
        st.builds(lambda r: {"ended": r, "exit": 0, "cpu_s": 0.5}, st.integers(0, 7))
        | st.builds(lambda p: {"pids": {"0": p}}, st.integers(1, 9999))
        | st.builds(lambda w: {"failed": w}, NAMES),
        max_size=6,
    ),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_what_init_says_is_the_same_however_it_is_cut(
    said: Sequence[dict[str, object]], cuts: Sequence[int]
) -> None:
    data = b"".join(json.dumps(one).encode() + b"\n" for one in said)
    at = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    lines, whole = ControlLines(), ControlLines().feed(data)
    pieces = [data[a:b] for a, b in itertools.pairwise(at)]
    assert [one for piece in pieces for one in lines.feed(piece)] == whole
    assert len(whole) == len(said)
