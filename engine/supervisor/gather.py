"""Turns what ranks write into events. May import events, messages and wire.

One `Gather` per run. Output, reports and stack dumps of a rank come on pipes of its own, so no
rank can speak for another; sequence numbers and ranks are given here, not read.
"""

import codecs
import re
import time
from collections.abc import Callable

from engine.errors import WireError
from engine.events import Collective, Event, Frame, Note, Output, Stream
from engine.facts import Args
from engine.messages import NOTES, render
from engine.program import Limits
from engine.reports import (
    AllocationReport,
    BegunReport,
    CollectiveReport,
    EndReport,
    FailureReport,
    FinishedReport,
    MemoryReport,
    NoteReport,
    ObservationReport,
    PeakReport,
    Report,
    StatisticReport,
    VerdictReport,
)
from engine.supervisor.facts import Stamp, stamped
from engine.supervisor.rank_state import RankState
from engine.wire import MAX_REPORT_BYTES, decode_report

_MAX_PENDING = 10_000
_MAX_STACK_BYTES = 64 * 1024
_MAX_NOTES = 32
_MAX_DROPPED = 1000
"""Malformed lines of a rank after which its trace is not read any more."""
_ENGINE_NOTES = ("output-truncated", "events-dropped", "unsandboxed")
_FRAME = re.compile(r'^  File "(.*)", line (\d{1,9}) in (.*)$', re.ASCII)


class Gather:
    """Feeds on bytes from pipes; sends events."""

    def __init__(
        self, world_size: int, limits: Limits, start_ns: int, send: Callable[[Event], None]
    ) -> None:
        self.ranks = [RankState() for _ in range(world_size)]
        self.output_bytes = 0
        self.trace_bytes = 0
        self.num_events = 0
        self.first_failed_rank: int | None = None
        self.is_hung = False
        """Set before a hung run is killed: the first death makes the others' calls end falsely."""
        self._limits = limits
        self._start_ns = start_ns
        self._send = send
        self._run_seq = 0
        self.takes_verdict = False
        """Whether what runs is a check: no other process may say what a run is worth."""
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {
            (rank, stream): make("replace")
            for rank in range(world_size)
            for stream in ("stdout", "stderr")
        }

    @property
    def is_over_trace_limit(self) -> bool:
        """Whether the run has produced more trace than it may."""
        limits = self._limits
        return self.trace_bytes > limits.trace_bytes or self.num_events > limits.trace_events

    @property
    def has_begun(self) -> bool:
        """Whether any rank has begun the program."""
        return any(state.has_begun for state in self.ranks)

    # -------------------------------------------------------------- numbering
    def now_ns(self) -> int:
        """Nanoseconds since the run's start."""
        return time.monotonic_ns() - self._start_ns

    def next_seq(self, rank: int) -> int:
        """The next sequence number of a rank, or of the run itself for rank -1."""
        if rank < 0:
            self._run_seq += 1
            return self._run_seq - 1
        self.ranks[rank].seq += 1
        return self.ranks[rank].seq - 1

    def _since_start(self, at_ns: int) -> int:
        return min(max(at_ns - self._start_ns, 0), self.now_ns())

    def note(self, rank: int, code: str, args: Args, line: int | None = None) -> None:
        """Send a note with its English sentence. Raises: KeyError when an argument is missing."""
        message = render(NOTES[code], args)  # before a number is given away for it
        self._send(
            Note(
                rank=rank,
                seq=self.next_seq(rank),
                at_ns=self.now_ns(),
                code=code,
                message=message,
                args=args,
                line=line,
            )
        )

    # -------------------------------------------------------------- output
    def output(self, rank: int, stream: Stream, data: bytes) -> None:
        """Bytes from stdout or stderr."""
        self.output_bytes += len(data)
        state = self.ranks[rank]
        room = self._limits.shown_bytes - state.shown_bytes
        shown = data[:room]
        state.shown_bytes += len(shown)
        text = self._decoders[rank, stream].decode(shown)
        if text:
            self._send_output(rank, stream, text)
        if len(data) > room and not state.is_cut:
            state.is_cut = True
            limit_kib = self._limits.shown_bytes // 1024
            self.note(rank, "output-truncated", {"rank": rank, "limit_kib": limit_kib})

    def _send_output(self, rank: int, stream: Stream, text: str) -> None:
        self._send(
            Output(
                rank=rank, seq=self.next_seq(rank), at_ns=self.now_ns(), stream=stream, text=text
            )
        )

    # -------------------------------------------------------------- reports
    def trace(self, rank: int, data: bytes) -> None:
        """Bytes from the trace pipe: lines, of which a malformed one is counted and dropped."""
        self.trace_bytes += len(data)
        state = self.ranks[rank]
        if state.num_dropped >= _MAX_DROPPED:
            state.count_unread(data)
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = bytes(state.partial_line) + line
            state.partial_line.clear()
            if state.is_skipping_line:
                state.is_skipping_line = False
                continue
            self._line(rank, whole)
        if state.is_skipping_line:
            return
        state.partial_line += rest
        if len(state.partial_line) > MAX_REPORT_BYTES:
            state.partial_line.clear()
            state.is_skipping_line = True
            state.num_dropped += 1

    def _line(self, rank: int, line: bytes) -> None:
        state = self.ranks[rank]
        if state.num_dropped >= _MAX_DROPPED or not line:
            state.num_dropped += 1
            return
        self.num_events += 1
        try:
            self._report(rank, decode_report(line))
        except WireError:
            state.num_dropped += 1

    def _report(self, rank: int, report: Report) -> None:
        state = self.ranks[rank]
        match report:
            case CollectiveReport():
                if len(state.pending) >= _MAX_PENDING or report.call in state.pending:
                    raise WireError("too many or repeated calls")
                state.pending[report.call] = report
            case EndReport():
                if self.is_hung:
                    return
                begun = state.pending.pop(report.call, None)
                if begun is None:
                    raise WireError("the end of a call that never began")
                self._send(self._collective(rank, begun, report.at_ns))
            case VerdictReport() if not self.takes_verdict:
                raise WireError("a rank judges its own run")
            case (
                StatisticReport()
                | MemoryReport()
                | PeakReport()
                | AllocationReport()
                | ObservationReport()
                | VerdictReport()
            ):
                seq, at_ns = self.next_seq(rank), self._since_start(report.at_ns)
                self._send(stamped(report, Stamp(rank=rank, seq=seq, at_ns=at_ns)))
            case NoteReport():
                state.num_notes += 1
                is_ranks = report.code in NOTES and report.code not in _ENGINE_NOTES
                if not is_ranks or state.num_notes > _MAX_NOTES:
                    raise WireError("not a note of a rank, or too many")
                try:
                    self.note(rank, report.code, report.args, report.line)
                except KeyError:
                    raise WireError("a note without its arguments") from None
            case FailureReport():
                if state.failure is None:
                    state.failure = report.failure
                    self.rank_failed(rank)
            case BegunReport():
                state.has_begun = True
            case FinishedReport():
                state.has_finished = True

    def rank_failed(self, rank: int) -> None:
        """Remember which rank failed first: later failures may only echo it."""
        if self.first_failed_rank is None:
            self.first_failed_rank = rank

    def _collective(self, rank: int, begun: CollectiveReport, end_ns: int | None) -> Collective:
        return Collective(
            rank=rank,
            seq=self.next_seq(rank),
            at_ns=self._since_start(begun.at_ns),
            op=begun.op,
            group=begun.group,
            group_ranks=begun.group_ranks,
            group_seq=begun.group_seq,
            group_size=begun.group_size or len(begun.group_ranks),
            input_bytes=begun.input_bytes,
            output_bytes=begun.output_bytes,
            dtype=begun.dtype,
            duration_ns=None if end_ns is None else max(end_ns - begun.at_ns, 0),
            phase=begun.phase,
            module=begun.module,
            line=begun.line,
            peer=begun.peer,
        )

    # -------------------------------------------------------------- stacks
    def stack(self, rank: int, data: bytes) -> None:
        """Bytes of a stack dump."""
        text = self.ranks[rank].stack_text
        text += data[: _MAX_STACK_BYTES - len(text)]

    def frames(self, rank: int) -> list[tuple[str, Frame]]:
        """(file, frame) of the rank's main thread from its newest dump, innermost first.

        faulthandler lists threads newest first, so the main thread's block is the last one.
        """
        text = self.ranks[rank].stack_text.decode("utf-8", "replace")
        block = text.rpartition("hread 0x")[2]
        found = [_FRAME.match(line) for line in block.splitlines()]
        return [
            (match[1], Frame(line=int(match[2]), function=match[3][:200]))
            for match in found[:200]
            if match
        ]

    # -------------------------------------------------------------- the end
    def finish(self) -> None:
        """Send what only the end makes certain: cut characters, endless calls, dropped lines."""
        for rank, state in enumerate(self.ranks):
            for stream in ("stdout", "stderr"):
                text = self._decoders[rank, stream].decode(b"", final=True)
                if text:
                    self._send_output(rank, "stderr" if stream == "stderr" else "stdout", text)
            if state.partial_line:  # cut off: a report that nobody will see
                state.num_dropped += 1
                state.partial_line.clear()
            for begun in state.pending.values():
                self._send(self._collective(rank, begun, None))
            if state.num_dropped:
                self.note(rank, "events-dropped", {"count": state.num_dropped, "rank": rank})
