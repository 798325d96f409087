"""The wire: what goes in comes out, and hostile bytes never get further than a WireError."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import WireError
from engine.events import Collective, Outcome, RankEnd, Statistic
from engine.program import Limits, Program
from engine.reports import CollectiveReport, StatisticReport
from engine.wire import (
    MAX_REPORT_BYTES,
    decode,
    decode_program,
    decode_report,
    encode,
    encode_program,
)

REPORT = StatisticReport(
    at_ns=5, module="1.bn", name="mean", scope="local", values=(1.5, -2.0), phase="forward", line=3
)


def test_report_survives_the_wire() -> None:
    assert decode_report(encode(REPORT).encode()) == REPORT


def test_lines_are_ascii_and_single() -> None:
    event = Statistic(
        rank=0, seq=1, at_ns=2, module="層\n", name="var", scope="global", values=(), phase=None,
        line=None,
    )  # fmt: skip
    line = encode(event)
    assert line.isascii()
    assert "\n" not in line
    assert decode(line) == event


def test_numbers_that_json_lacks_travel_as_null() -> None:
    report = StatisticReport(
        at_ns=5, module="bn", name="mean", scope="local", values=(math.nan, math.inf), phase=None,
        line=None,
    )  # fmt: skip
    line = encode(report)
    assert json.loads(line)["values"] == [None, None]
    back = decode_report(line.encode())
    assert isinstance(back, StatisticReport)
    assert all(math.isnan(value) for value in back.values)


def test_outcome_survives_the_wire() -> None:
    outcome = Outcome(
        rank=-1,
        seq=9,
        at_ns=10,
        status="error",
        ranks=(RankEnd(rank=0, exit=-9, cpu_s=0.5, peak_bytes=7),),
        diagnosis=(),
        elapsed_s=1.0,
        dropped_events=0,
    )
    assert decode(encode(outcome)) == outcome


@given(st.text(max_size=200), st.integers(1, 8))
def test_program_survives_the_wire(source: str, world_size: int) -> None:
    try:
        source.encode()
    except UnicodeEncodeError:
        return
    program = Program(source=source, world_size=world_size, limits=Limits(wall_s=3))
    assert decode_program(encode_program(program)) == program


@given(st.binary(max_size=300))
def test_any_bytes_are_a_report_or_a_wire_error(data: bytes) -> None:
    try:
        report = decode_report(data)
    except WireError:
        return
    assert decode_report(encode(report).encode()) == report


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["call", "at_ns", "op", "group_ranks", "module", "values", "name", "scope", "failure", "args"]
)


@given(st.dictionaries(FIELDS, JSON), st.sampled_from(["collective", "end", "failure", "note"]))
def test_any_json_is_a_report_or_a_wire_error(fields: dict[str, object], kind: str) -> None:
    try:
        report = decode_report(json.dumps({**fields, "kind": kind}).encode())
    except WireError:
        return
    assert report.kind == kind


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'{"kind":"outcome"}',
        b'{"kind":"end","call":true,"at_ns":1}',
        b'{"kind":"end","call":"1","at_ns":1}',
        b'{"kind":"end","call":1e3,"at_ns":1}',
        b'{"kind":"end","call":1,"at_ns":1' + b"0" * 400 + b"}",
        b"[" * 60_000,
        b'{"kind":"end","call":1,"at_ns":1}\xff',
        b'{"kind":"note","at_ns":1,"code":"x","args":{"a":[]}}',
        b'{"kind":"statistic","at_ns":1,"module":"m","name":"colour","scope":"local",'
        b'"values":[],"phase":null,"line":null}',
    ],
)
def test_hostile_line_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        decode_report(line)


def test_caps_are_kept() -> None:
    call = CollectiveReport(
        call=0, at_ns=1, op="x" * 600, group="0", group_ranks=(0,), group_seq=0, input_bytes=1,
        output_bytes=1, dtype=None, phase=None, module=None, line=None,
    )  # fmt: skip
    with pytest.raises(WireError, match="name"):
        decode_report(encode(call).encode())
    with pytest.raises(WireError, match="bytes"):
        decode_report(b" " * (MAX_REPORT_BYTES + 1))


def test_contract_example_has_its_fields() -> None:
    event = Collective(
        rank=0, seq=4, at_ns=1, op="all_gather", group="0", group_ranks=(0, 1, 2, 3), group_seq=0,
        group_size=4, input_bytes=52, output_bytes=208, dtype="float32", duration_ns=None,
        phase="forward", module="1.bn", line=17,
    )  # fmt: skip
    assert json.loads(encode(event)) == {
        "kind": "collective", "rank": 0, "seq": 4, "at_ns": 1, "op": "all_gather", "group": "0",
        "group_ranks": [0, 1, 2, 3], "group_seq": 0, "group_size": 4, "input_bytes": 52,
        "output_bytes": 208, "dtype": "float32", "duration_ns": None, "phase": "forward",
        "module": "1.bn", "line": 17, "peer": None,
    }  # fmt: skip
