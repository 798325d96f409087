"""What ranks export, as the supervisor takes it: bounded, decoded strictly, never trusted.

May import frames and the leaves; never torch.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from engine.errors import WireError
from engine.grading.frames import HEAD, MAGIC, TOO_LARGE, VALUES, decode_values
from engine.program import Program

ExportState = Literal["given", "missing", "too_large", "malformed"]
HEADER_START = b'{"export"'
"""How the line before an export's body begins, between supervisor and executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExport:
    """What one rank handed out; the body is there only when it was decoded without a fault."""

    rank: int
    state: ExportState
    body: bytes = b""


class ExportGather:
    """Collects what the ranks of one run export, within the limit for all of them."""

    def __init__(self, program: Program) -> None:
        self._received = [bytearray() for _ in range(program.world_size)]
        self._names = frozenset(program.exports)
        self._left_bytes = program.limits.export_bytes + program.world_size * HEAD.size
        self._is_over = False

    def take(self, rank: int, data: bytes) -> None:
        """Bytes from a rank's export pipe; once over the limit, nothing of any rank is kept."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._is_over = True
            for kept in self._received:
                kept.clear()
        if self._names and not self._is_over:
            self._received[rank] += data

    def finished(self, ended_well: Iterable[bool]) -> tuple[RankExport, ...]:
        """One for each rank, if any were asked for; of a rank that failed, nothing counts."""
        if not self._names:
            return ()
        return tuple(
            self._finish(rank, bytes(data)) if is_well else RankExport(rank=rank, state="missing")
            for rank, (data, is_well) in enumerate(zip(self._received, ended_well, strict=True))
        )

    def _finish(self, rank: int, data: bytes) -> RankExport:
        if self._is_over:
            return RankExport(rank=rank, state="too_large")
        if not data:
            return RankExport(rank=rank, state="missing")
        if len(data) < HEAD.size:
            return RankExport(rank=rank, state="malformed")
        magic, kind, num_bytes = HEAD.unpack_from(data)
        body = data[HEAD.size :]
        if magic != MAGIC or num_bytes != len(body) or kind not in (VALUES, TOO_LARGE):
            return RankExport(rank=rank, state="malformed")
        if kind == TOO_LARGE:
            return RankExport(rank=rank, state="malformed" if body else "too_large")
        try:
            is_asked = decode_values(body).keys() <= self._names
        except WireError:
            is_asked = False
        if not is_asked:
            return RankExport(rank=rank, state="malformed")
        return RankExport(rank=rank, state="given", body=body)


def export_header(export: RankExport) -> bytes:
    """The line that goes before an export's body, newline included."""
    said = {"export": export.rank, "state": export.state, "num_bytes": len(export.body)}
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def read_export_header(line: bytes) -> tuple[int, ExportState, int]:
    """Rank, state and number of bytes of the body that comes next. Raises: WireError."""
    try:
        said = json.loads(line)
        rank, state, num_bytes = said["export"], said["state"], said["num_bytes"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError("no header of an export") from None
    is_right = type(rank) is int and type(num_bytes) is int and state in get_args(ExportState)
    if not is_right or rank < 0 or num_bytes < 0:
        raise WireError("no header of an export")
    return rank, state, num_bytes
