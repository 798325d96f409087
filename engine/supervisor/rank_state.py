"""What the supervisor knows of one rank. May import events and reports."""

from dataclasses import dataclass, field

from engine.events import Failure
from engine.reports import CollectiveReport


@dataclass(slots=True)
class RankState:
    """What is known of one rank."""

    seq: int = 0
    shown_bytes: int = 0
    is_cut: bool = False
    partial_line: bytearray = field(default_factory=bytearray)
    is_skipping_line: bool = False
    num_dropped: int = 0
    num_notes: int = 0
    pending: dict[int, CollectiveReport] = field(default_factory=dict)
    failure: Failure | None = None
    has_begun: bool = False
    has_finished: bool = False
    stack_text: bytearray = field(default_factory=bytearray)
    exit: int | None = None
    has_ended: bool = False
    cpu_s: float = 0.0
    peak_bytes: int = 0

    def count_unread(self, data: bytes) -> None:
        """Count lines as dropped without a look at any: a flood of them costs little then."""
        _, newline, rest = data.rpartition(b"\n")
        self.num_dropped += data.count(b"\n")
        if newline:
            self.num_dropped -= self.is_skipping_line  # which was counted when it got too long
            self.is_skipping_line = False
            self.partial_line.clear()
        if not self.is_skipping_line:
            self.partial_line[:1] = rest[-1:] or self.partial_line[:1]
