"""Whoever reads a trace, under well-formed events that no honest run would have: no exception.

Diagnosis, the fold, its steps and the panels see what ranks say, and a rank may say anything that
the wire takes. Depth by ACADEMY_FUZZ, see tests.engine.fuzzing.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.diagnosis
from app.i18n import load_translations
from app.panels import num_events, run_view, trace_json
from engine.costs.steps import step_spans
from engine.diagnosis import diagnose
from engine.events import (
    Collective,
    Event,
    Failure,
    Frame,
    Note,
    Observation,
    Outcome,
    RankEnd,
    Started,
    Statistic,
    Status,
)
from engine.messages import NOTES
from engine.program import Program
from engine.trace import fold, layer_steps
from engine.wire import decode, encode
from tests.app.panel_events import Record
from tests.engine.fuzzing import COUNTS, FLOATS, NAMES, SMALL, TEXTS, digging, values_of

RULES = "\n".join(
    file.read_text(encoding="utf-8")
    for file in sorted(Path(engine.diagnosis.__file__).parent.rglob("*.py"))
)
OBSERVED = sorted(set(re.findall(r'observed\(case, "([a-z-]+)"', RULES)))
"""What the rules ask for; the words that they compare with are good arguments."""
WORDS = sorted(set(re.findall(r'"([a-z][a-z_]{2,20})"', RULES)))
OPS = st.sampled_from(
    ["all_reduce", "broadcast", "reduce", "send", "recv", "all_gather", "barrier", "scatter"]
)
RANKS = st.integers(0, 3)
LINES = st.none() | st.integers(0, 6) | COUNTS
SAID = st.sampled_from([*WORDS, "0,1", "9,1", "²", "{x}", "%(x)s", "rank 1"]) | NAMES
ARGS = st.dictionaries(
    st.sampled_from(WORDS), SAID | SMALL | COUNTS | FLOATS | st.none(), max_size=8
)
FAILURES = values_of(
    Failure,
    type=st.sampled_from(["RuntimeError", "ValueError", "NameError", "DistBackendError"]) | NAMES,
    line=LINES,
    message=st.sampled_from(re.findall(r'"([A-Z][^"\\\n]{12,60})"', RULES) or ["x"]) | TEXTS,
    frames=st.lists(values_of(Frame, line=SMALL)).map(tuple),
)
EVENTS: st.SearchStrategy[list[Event]] = st.lists(
    st.one_of(
        values_of(
            Collective, rank=RANKS, op=OPS, line=LINES, group=st.just("0"), group_seq=SMALL,
            group_ranks=st.lists(st.integers(0, 5), max_size=4).map(tuple),
            peer=st.none() | st.integers(0, 9),
        ),
        values_of(
            Observation, rank=RANKS, name=st.sampled_from(OBSERVED), args=ARGS, line=LINES
        ),
        values_of(Note, rank=RANKS, code=st.sampled_from(sorted(NOTES)) | NAMES, args=ARGS),
        values_of(Statistic, rank=RANKS, module=st.just("bn")),
        *(
            values_of(kind, rank=RANKS)
            for kind in get_args(Event)
            if kind not in (Started, Outcome)
        ),
    ),
    max_size=14,
)  # fmt: skip
OUTCOMES = values_of(
    Outcome,
    rank=st.just(-1),
    status=st.sampled_from(["ok", "error", "deadlock"]) | st.sampled_from(get_args(Status)),
    ranks=st.lists(
        values_of(
            RankEnd,
            failure=st.none() | FAILURES,
            stack=st.lists(values_of(Frame, line=st.integers(0, 8)), max_size=3).map(tuple),
            exit=st.sampled_from([None, 0, 1, -9, -11, -31]),
        ),
        min_size=4,
        max_size=4,
    ).map(lambda ends: tuple(dataclasses.replace(e, rank=r) for r, e in enumerate(ends))),
    first_failed_rank=st.none() | RANKS,
    diagnosis=st.just(()),
)
HARD_SOURCES = [
        "",
        "import torch.distributed as dist\nif dist.get_rank():\n    dist.all_reduce(x)\n",
        "\x00",
        "(" * 5000,
        "x = " + "-" * 20_000 + "1",
        "if 1:\n" + "".join(" " * n + "if 1:\n" for n in range(1, 150)),
        "a" + ".b" * 20_000,
        "\x0c\r\r\n\u2028x = 1\x85y",
]  # fmt: skip
SOURCES = st.sampled_from(HARD_SOURCES) | TEXTS
LANGUAGES = load_translations()


def read(source: str, outcome: Outcome, events: Sequence[Event]) -> None:
    program = Program(source=source, world_size=4)
    started = Started(rank=-1, seq=0, at_ns=0, world_size=4, device="cpu", tier="walled")
    trace = fold([started, *events])
    found = diagnose(program, outcome, trace)
    assert len(found) <= 4
    whole = fold([started, *events, dataclasses.replace(outcome, diagnosis=found)])
    assert whole.outcome is not None
    assert decode(encode(whole.outcome)) == whole.outcome
    layer_steps(whole.statistics)
    for rank in range(4):
        step_spans(whole, rank=rank)
    for translations in LANGUAGES.values():
        record = Record(source=source)
        view = run_view(record=record, trace=whole, translations=translations)
        assert view.num_events == num_events(whole)
        assert view.status == outcome.status
    trace_json(whole, 0)


@digging(150)
@given(SOURCES, OUTCOMES, EVENTS)
def test_forged_events_are_read_without_an_exception(
    source: str, outcome: Outcome, events: list[Event]
) -> None:
    read(source, outcome, [decode(encode(event)) for event in events])


@pytest.mark.parametrize("source", HARD_SOURCES, ids=range(len(HARD_SOURCES)))
@pytest.mark.parametrize("status", ["ok", "deadlock", "error"])
def test_source_that_is_hard_to_parse_is_read_without_an_exception(
    source: str, status: Status
) -> None:
    """The parser raises MemoryError for some: the learner once waited for ever then."""
    call = Collective(
        rank=0, seq=0, at_ns=1, op="all_reduce", group="0", group_ranks=(0, 1, 2, 3), group_seq=0,
        group_size=4, input_bytes=4, output_bytes=4, dtype="float32", duration_ns=None, phase=None,
        module=None, line=1,
    )  # fmt: skip
    stack = (Frame(line=1, function="<module>"),)
    ends = [RankEnd(rank=r, exit=None, cpu_s=0.0, peak_bytes=0, stack=stack) for r in range(4)]
    outcome = Outcome(
        rank=-1, seq=0, at_ns=1, status=status, ranks=tuple(ends), diagnosis=(), elapsed_s=1.0,
        dropped_events=0,
    )  # fmt: skip
    read(source, outcome, [call])


@pytest.mark.parametrize("line", [0, 2, 10**6])
def test_failure_on_a_line_that_the_program_has_not_is_read(line: int) -> None:
    failure = Failure(
        type="RuntimeError", message="Default process group has not been initialized, please",
        line=line, column=0, end_line=line, end_column=4, frames=(),
    )  # fmt: skip
    end = RankEnd(rank=0, exit=1, cpu_s=0.0, peak_bytes=0, failure=failure)
    outcome = Outcome(
        rank=-1, seq=0, at_ns=1, status="error", ranks=(end,), diagnosis=(), elapsed_s=1.0,
        dropped_events=0, first_failed_rank=0,
    )  # fmt: skip
    read("x = 1\n", outcome, [])
