"""The supervisor under hostile bytes, on every pipe and cut anywhere: one outcome, right counts,
and nothing that a rank writes touches another. Depth by ACADEMY_FUZZ, see tests.engine.fuzzing.
"""

import asyncio
import dataclasses
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import WireError
from engine.events import Collective, Event, Note, Outcome
from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.messages import NOTES, render
from engine.program import Limits, Program
from engine.reports import (
    AllocationReport,
    BegunReport,
    CollectiveReport,
    EndReport,
    FinishedReport,
    MemoryReport,
    NoteReport,
    ObservationReport,
    PeakReport,
    Report,
    StatisticReport,
    VerdictReport,
)
from engine.supervisor.gather import Gather
from engine.supervisor.link import BEGUN
from engine.wire import decode, decode_report, encode
from tests.engine.conftest import Runner, collect
from tests.engine.fuzzing import NAMES, SMALL, corpus, digging, values_of
from tests.engine.watched import Write

HOSTILE = [data for data in corpus("reports").values() if b"\n" not in data]
ENGINES_OWN = ("output-truncated", "events-dropped", "unsandboxed")
CALLS = values_of(CollectiveReport, call=SMALL, group_size=st.none(), at_ns=st.just(1))
NOTED = st.builds(
    NoteReport,
    at_ns=st.just(1),
    code=st.sampled_from(["nccl-to-gloo", "syncbn-on-cpu", "unsandboxed", "events-dropped", "?"]),
    args=st.dictionaries(st.sampled_from(["backend", "count", "self"]), NAMES | st.none()),
)
REPORTS: st.SearchStrategy[Report] = st.one_of(
    CALLS,
    st.builds(EndReport, call=SMALL, at_ns=st.just(2)),
    NOTED,
    values_of(StatisticReport),
    values_of(MemoryReport),
    values_of(PeakReport),
    values_of(AllocationReport),
    values_of(ObservationReport),
    values_of(VerdictReport),
    st.builds(FinishedReport, at_ns=st.just(1)),
)


def _line(report: Report) -> bytes:
    return encode(report).encode()


LINES = st.lists(
    REPORTS.map(_line)
    | st.sampled_from(HOSTILE)
    | st.binary(max_size=20).filter(lambda data: b"\n" not in data),
    max_size=12,
)
CUTS = st.lists(st.integers(0, 3000), max_size=8)
GOOD: tuple[Report, ...] = (
    BegunReport(at_ns=1),
    *(
        ObservationReport(at_ns=1, name=f"seen {number}", args={"n": number}, line=number)
        for number in range(5)
    ),
    FinishedReport(at_ns=1),
)
GOOD_BYTES = b"".join(encode(report).encode() + b"\n" for report in GOOD)


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    at = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(at)]


def num_refused(data: bytes) -> int:
    """How many lines are no reports of a rank: a second opinion on what the supervisor counts."""
    *lines, rest = data.split(b"\n")
    pending: set[int] = set()
    num_notes, refused = 0, int(bool(rest))
    for line in lines:
        try:
            report = decode_report(line)
        except WireError:
            refused += 1
            continue
        match report:
            case CollectiveReport(call=call):
                refused += call in pending
                pending.add(call)
            case EndReport(call=call):
                refused += call not in pending
                pending.discard(call)
            case NoteReport():
                num_notes += 1
                refused += num_notes > 32 or not _can_be_said(report)
            case VerdictReport():
                refused += 1
    return refused


def _can_be_said(note: NoteReport) -> bool:
    if note.code not in NOTES or note.code in ENGINES_OWN:
        return False
    try:
        render(NOTES[note.code], note.args)
    except KeyError:
        return False
    return True


def assert_numbered(events: Sequence[Event], world_size: int) -> None:
    for rank in range(-1, world_size):
        numbers = [event.seq for event in events if event.rank == rank]
        assert numbers == list(range(len(numbers)))


# ------------------------------------------------------------------ what is gathered
def gathered(pieces: Sequence[bytes]) -> tuple[list[Event], Gather]:
    """What becomes of rank 0's bytes, with rank 1 writing good reports in between."""
    events: list[Event] = []
    gather = Gather(2, Limits(), time.monotonic_ns(), events.append)
    for piece, good in itertools.zip_longest(pieces, cut(GOOD_BYTES, range(0, 900, 100))):
        if piece is not None:
            gather.trace(0, piece)
        if good is not None:
            gather.trace(1, good)
    gather.finish()
    return events, gather


def without_time(events: Sequence[Event], rank: int) -> list[Event]:
    return [dataclasses.replace(event, at_ns=0) for event in events if event.rank == rank]


@digging(200)
@given(LINES, CUTS, st.booleans())
@example([b"\n" * 3000], [10], False)
@example([b"x" * 70_000, b"y"], [65_536, 65_537], True)
@example([b"x" * 70_000], [1000], False)
@example([encode(NoteReport(at_ns=1, code="nccl-to-gloo", args={})).encode()], [], True)
def test_what_a_rank_writes_means_the_same_however_it_is_cut(
    lines: list[bytes], cuts: list[int], ends: bool
) -> None:
    data = b"\n".join(lines) + b"\n" * ends
    whole, _ = gathered([data])
    events, gather = gathered(cut(data, cuts))
    assert without_time(events, 0) == without_time(whole, 0)
    assert gather.ranks[0].num_dropped == num_refused(data)
    assert gather.ranks[1].num_dropped == 0
    assert [e.kind for e in events if e.rank == 1] == ["observation"] * 5
    assert_numbered(events, 2)
    assert all(decode(encode(event)) == event for event in events)


@digging(100)
@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.binary(max_size=200), max_size=6))
def test_any_output_and_any_dump_of_stacks_can_be_sent(
    texts: list[bytes], dumps: list[bytes]
) -> None:
    events: list[Event] = []
    gather = Gather(1, Limits(shown_bytes=64), time.monotonic_ns(), events.append)
    for text in texts:
        gather.output(0, "stdout", text)
    for dump in dumps:
        gather.stack(0, b'Thread 0x1:\n  File "/work/program.py", line ' + dump)
    gather.finish()
    assert all(decode(encode(event)) == event for event in events)
    assert sum(event.code == "output-truncated" for event in events if isinstance(event, Note)) == (
        sum(map(len, texts)) > 64
    )
    assert all(frame.line >= 0 for _, frame in gather.frames(0))


# ------------------------------------------------------------------ the watch itself
Watched = Callable[[Sequence[Write]], list[Event]]


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    """Runs a real supervisor of two ranks over what init and ranks write; checks its last word."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.engine.watched"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def watch(writes: Sequence[Write]) -> list[Event]:
            send, receive = process.stdin, process.stdout
            assert send
            assert receive
            return _answered(send, receive, writes)

        yield watch
        assert process.stdin
        process.stdin.close()
        assert process.wait(20) == 0


def _answered(send: IO[str], receive: IO[str], writes: Sequence[Write]) -> list[Event]:
    send.write(json.dumps({"world_size": 2, "writes": writes}) + "\n")
    send.flush()
    answer = json.loads(receive.readline())
    assert answer["code"] == 0
    said = [line for line in answer["lines"] if line != BEGUN.decode().strip()]
    events = [decode(line) for line in said]
    assert [event.kind for event in events].count("outcome") == 1
    assert isinstance(events[-1], Outcome)
    assert_numbered(events, 2)
    return events


def said_by_init(exits: Sequence[int]) -> list[Write]:
    lines = [{"ended": rank, "exit": code, "cpu_s": 0.1} for rank, code in enumerate(exits)]
    return [("control", -1, (json.dumps(line) + "\n").encode().hex()) for line in lines]


def outcome_of(events: Sequence[Event]) -> Outcome:
    assert isinstance(events[-1], Outcome)
    return events[-1]


@digging(25)
@given(LINES, CUTS)
def test_hostile_rank_harms_neither_its_run_nor_its_neighbour(
    watched: Watched, lines: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(line + b"\n" for line in [encode(BegunReport(at_ns=1)).encode(), *lines])
    writes: list[Write] = [("trace", 0, piece.hex()) for piece in cut(data, cuts)]
    writes[1:1] = [("trace", 1, GOOD_BYTES.hex())]
    events = watched([*writes, *said_by_init([0, 0])])
    assert outcome_of(events).status == "ok"
    assert outcome_of(events).dropped_events == num_refused(data)
    assert [event.kind for event in events if event.rank == 1] == ["observation"] * 5


@pytest.mark.parametrize("name", corpus("control"))
@pytest.mark.parametrize("is_first", [True, False])
def test_hostile_bytes_of_init_are_the_engines_failure(
    watched: Watched, name: str, is_first: bool
) -> None:
    hostile: list[Write] = [("control", -1, corpus("control")[name].hex())]
    good: list[Write] = [("trace", 1, GOOD_BYTES.hex())]
    ended = said_by_init([0, 0])[:1]
    events = watched([*good, *(hostile + ended if is_first else ended + hostile)])
    assert outcome_of(events).status == "engine_failure"


@digging(25)
@given(st.binary(max_size=60), CUTS)
def test_any_bytes_of_init_end_in_one_outcome(
    watched: Watched, data: bytes, cuts: list[int]
) -> None:
    pieces: list[Write] = [("control", -1, piece.hex()) for piece in cut(data, cuts)]
    assert outcome_of(watched(pieces)).status == "engine_failure"


@digging(15)
@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr", "stack", "export"]),
       st.integers(0, 1), st.binary(max_size=60).map(bytes.hex)), max_size=8))  # fmt: skip
def test_any_bytes_on_the_other_pipes_leave_the_outcome_alone(
    watched: Watched, writes: list[Write]
) -> None:
    begun = encode(BegunReport(at_ns=1)).encode() + b"\n"
    good: list[Write] = [("trace", rank, begun.hex()) for rank in range(2)]
    assert outcome_of(watched([*good, *writes, *said_by_init([0, 0])])).status == "ok"


# ------------------------------------------------------------------ real ranks, real sandboxes
async def test_rank_that_writes_every_hostile_line_is_alone_in_what_it_loses(run: Runner) -> None:
    source = (
        "import os, torch, torch.distributed as dist\n"
        'dist.init_process_group("gloo")\n'
        "dist.all_reduce(torch.ones(1))\n"
        "if dist.get_rank() == 0:\n"
        f"    for line in {HOSTILE!r}:\n"
        "        os.write(3, line + b'\\n')\n"
        "dist.all_reduce(torch.ones(2))\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
    )
    ran = await run(source, ranks=2)
    assert ran.outcome.status == "ok"
    assert ran.outcome.dropped_events == len(HOSTILE)
    dropped = [e for e in ran.events if isinstance(e, Note) and e.code == "events-dropped"]
    assert [(note.rank, note.args["count"]) for note in dropped] == [(0, len(HOSTILE))]
    calls = [[e.op for e in ran.trace.collectives if e.rank == rank] for rank in range(2)]
    assert calls[0] == calls[1]
    assert calls[0].count("all_reduce") == 2
    assert_numbered(ran.events, 2)
    assert all(isinstance(e.duration_ns, int) for e in ran.events if isinstance(e, Collective))


async def test_hostile_program_headers_are_refused_and_the_next_run_is_well(
    executor: LocalExecutor,
) -> None:
    on_file = corpus("programs")
    for data in (
        on_file["wall-nan"],
        on_file["source-surrogate"],
        on_file["deep"],
        b"x" * (5 << 20),
    ):
        slot = await executor._warm.take()
        half = len(data) // 2
        try:
            for piece in (data[:half], data[half:] + b"\n"):
                slot.writer.write(piece)
                await slot.writer.drain()
            slot.writer.write_eof()
        except ConnectionError:
            pass  # it has had enough
        try:
            async with asyncio.timeout(20):
                said = await slot.reader.read()
        except ConnectionError:
            said = b""
        slot.close()
        assert b'"kind"' not in said, data[:100]
        assert said.startswith(b'{"failed"') or not said or not data.strip()
    executor._warm.refill()
    ref = RunRef(run_id="after-hostile-headers")
    await executor.submit(Program(source="print(1)\n", world_size=2), ref)
    assert (await collect(executor, ref)).outcome.status == "ok"
