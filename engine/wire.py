"""Events and reports <-> JSON lines: strict validation, caps. May import the leaves and pydantic.

Whatever a rank writes is untrusted until `decode_report` has returned. One line is one value,
ASCII-escaped, without a newline inside. Numbers that JSON lacks (NaN, infinities) travel as null.
"""

import dataclasses
import json
import math
import re
from collections.abc import Hashable
from functools import cache
from typing import Annotated, cast

from pydantic import Field, TypeAdapter

from engine.errors import WireError
from engine.events import Event
from engine.facts import Args, MemoryFacts
from engine.program import MAX_RANKS, MAX_SIMULATED_RANKS, Program
from engine.reports import (
    AllocationReport,
    CollectiveReport,
    EndReport,
    FailureReport,
    MemoryReport,
    NoteReport,
    ObservationReport,
    PeakReport,
    Report,
    StatisticReport,
    VerdictReport,
)
from engine.strict import MAX_COUNT, Reader

MAX_REPORT_BYTES = 64 * 1024
"""Longest line that a rank may write on its trace pipe."""
MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_PARTS = 512 * 1024
"""Brackets and commas in one event, those in its texts included: an object may cost a KiB."""
MAX_TEXT = 8 * 1024
MAX_NAME = 512
MAX_VALUES = 4096
MAX_FRAMES = 64
MAX_HELD = 64
"""Holdings of a peak, and dimensions of a shape."""
MAX_RESULTS = 256
"""Things that one check may look at."""
MAX_ARGS = 16

_WORDS_AND_NUMBERS = (int, str, type(None), bool)
_MAY_LACK = frozenset({"values"})
_FIRST = {"kind": 0, "rank": 1, "seq": 2, "at_ns": 3}
_VALUES = re.compile(rb'"values":\[[^\[\]]*\]')


@cache
def _report_reader() -> Reader[Report]:
    adapter: TypeAdapter[Report] = TypeAdapter(Annotated[Report, Field(discriminator="kind")])
    return Reader(adapter, may_lack=_MAY_LACK)


@cache
def _event_reader() -> Reader[Event]:
    adapter: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])
    return Reader(adapter, may_lack=_MAY_LACK)


@cache
def _program_reader() -> Reader[Program]:
    return Reader(TypeAdapter(Program))


@cache
def _names(cls: Hashable) -> tuple[str, ...]:
    names = [field.name for field in dataclasses.fields(cast(type, cls))]
    return tuple(sorted(names, key=lambda name: _FIRST.get(name, len(_FIRST))))


def _plain(value: object) -> object:
    """Dataclasses to dicts, non-finite numbers to None; everything else as it is."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return _fields(value)


def _fields(item: object) -> dict[str, object]:
    """The fields of a dataclass; most are words and numbers, which need no call of their own."""
    return {
        name: value if type(value) in _WORDS_AND_NUMBERS else _plain(value)
        for name in _names(cast(Hashable, type(item)))
        for value in (getattr(item, name),)
    }


@cache
def _encoder() -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def encode(item: Event | Report, *, is_simulated: bool = False) -> str:
    """One JSON line (without its newline) for an event or a report.

    is_simulated labels an event of a simulated run; decoding takes no notice of the label.
    """
    fields = _fields(item)
    if is_simulated:
        fields["simulated"] = True
    return _encoder().encode(fields)


def decode(line: str | bytes) -> Event:
    """The event of one line. Raises: WireError."""
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    _require(len(data) <= MAX_EVENT_BYTES, "an event is too long")
    num_parts = sum(map(data.count, (b"{", b"[", b",")))
    _require(num_parts <= MAX_PARTS, "an event has too many parts")
    event = _event_reader().read(_nulls_as_nan(data))
    _require(-1 <= event.rank < MAX_RANKS, "an event of no such rank")
    _require(event.seq >= 0 and event.at_ns >= 0, "an event of no such number or time")
    return event


def decode_report(line: bytes) -> Report:
    """The report of one line from a rank, within the caps. Raises: WireError."""
    if len(line) > MAX_REPORT_BYTES:
        raise WireError(f"a report has {len(line)} bytes, more than {MAX_REPORT_BYTES}")
    report = _report_reader().read(_nulls_as_nan(line))
    _check_sizes(report)
    return report


def encode_program(program: Program) -> bytes:
    """A program as one line, newline included."""
    return json.dumps(_plain(program)).encode() + b"\n"


def decode_program(line: bytes) -> Program:
    """The program of one line. Raises: WireError."""
    return _program_reader().read(line)


def prepare() -> None:
    """Build the validators now and try one, so that no run pays for it."""
    _report_reader()
    _event_reader()
    decode_program(encode_program(Program(source="", world_size=1)))


def _nulls_as_nan(line: bytes) -> bytes:
    """Numbers that JSON lacks, as the reader of a statistic knows them."""
    if b'"statistic"' not in line:  # the only kind whose numbers may be null
        return line
    return _VALUES.sub(lambda match: match[0].replace(b"null", b"NaN"), line)


def _check_sizes(report: Report) -> None:
    """Caps that no type states. Raises: WireError."""
    names: tuple[str | None, ...] = ()
    counts: tuple[int | None, ...] = (report.at_ns,)
    match report:
        case CollectiveReport():
            names = (report.op, report.group, report.dtype, report.module)
            counts += (report.input_bytes, report.output_bytes, report.group_seq, report.call)
            counts += (report.line, report.peer, report.group_size, *report.group_ranks)
            _require(len(report.group_ranks) <= MAX_FRAMES, "too many ranks in a group")
            size = report.group_size
            is_size = size is None or len(report.group_ranks) <= size <= MAX_SIMULATED_RANKS
            _require(is_size, "a group of no such size")
        case StatisticReport():
            names, counts = (report.module,), (*counts, report.line)
            _require(1 <= len(report.values) <= MAX_VALUES, "no values, or too many")
        case MemoryReport() | PeakReport():
            names = (report.module,)
            counts += (report.total_bytes, *memory_bytes(report), report.line)
            if isinstance(report, PeakReport):
                _require(len(report.held) <= MAX_HELD, "too many holdings")
                for held in report.held:
                    names += (held.module, held.dtype)
                    counts += (held.num_bytes, held.num_storages, held.line, *(held.shape or ()))
        case AllocationReport():
            names = (report.module, report.op, report.dtype)
            counts += (report.storage, report.num_bytes, report.line, *(report.shape or ()))
        case ObservationReport():
            names, counts = (report.name,), (*counts, report.line)
            _check_args(report.args)
        case NoteReport():
            names, counts = (report.code,), (*counts, report.line)
            _check_args(report.args)
        case FailureReport():
            failure = report.failure
            names = (failure.type, *(f.function for f in failure.frames))
            counts += (failure.line, failure.column, failure.end_line, failure.end_column)
            counts += tuple(f.line for f in failure.frames)
            _require(len(failure.message) <= MAX_TEXT, "a message is too long")
            _require(len(failure.frames) <= MAX_FRAMES, "too many frames")
        case EndReport():
            counts += (report.call,)
        case VerdictReport():
            names = tuple(n for result in report.results for n in (result.id, result.code))
            _require(len(report.results) <= MAX_RESULTS, "too many results")
            told = [(result.message, result.args) for result in report.results]
            for result in report.results:
                _require(len(result.in_languages) <= MAX_ARGS, "too many languages")
                names += tuple(result.in_languages)
                told += [(text, {}) for text in result.in_languages.values()]
            if report.problem:
                names += (report.problem.code,)
                told.append((report.problem.message, report.problem.args))
            for message, args in told:
                _require(len(message) <= MAX_TEXT, "a message is too long")
                _check_args(args)
    _require(all(len(name) <= MAX_NAME for name in names if name), "a name is too long")
    _require(all(0 <= n < MAX_COUNT for n in counts if n is not None), "a number is out of range")


def _check_args(args: Args) -> None:
    names = (*args, *(value for value in args.values() if isinstance(value, str)))
    counts = [value for value in args.values() if isinstance(value, int)]
    _require(len(args) <= MAX_ARGS, "too many arguments")
    _require(all(len(name) <= MAX_NAME for name in names), "an argument is too long")
    _require(all(0 <= n < MAX_COUNT for n in counts), "an argument is out of range")


def memory_bytes(facts: MemoryFacts) -> tuple[int | None, ...]:
    """Every number of bytes that a report of memory has."""
    return (
        facts.parameter_bytes,
        facts.gradient_bytes,
        facts.optimizer_bytes,
        facts.activation_bytes,
        facts.buffer_bytes,
        facts.communication_bytes,
        facts.other_bytes,
        facts.peak_bytes,
        facts.allocated_bytes,
        facts.reserved_bytes,
    )


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise WireError(reason)
