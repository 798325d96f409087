"""The supervisor's end of its connection to the executor. May import events and wire."""

import select
import socket
import time
from collections.abc import Iterable

from engine.events import Event
from engine.grading.received import RankExport, export_header
from engine.wire import encode

BEGUN = b'{"begun":true}\n'
"""Not an event: says that a rank has begun the program, so the run must not be made again."""
_HIGH_WATER_BYTES = 1 << 20


class Link:
    """Sends events without ever blocking the watch over the run; keeps what does not fit yet."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._backlog = bytearray()
        self._has_told_begun = False
        self.is_broken = False

    @property
    def is_full(self) -> bool:
        """The reader is slow: stop reading ranks, so that they wait rather than fill memory."""
        return len(self._backlog) > _HIGH_WATER_BYTES

    @property
    def has_backlog(self) -> bool:
        return bool(self._backlog)

    def send(self, event: Event) -> None:
        self._backlog += encode(event).encode() + b"\n"

    def tell_begun(self, *, has_begun: bool) -> None:
        """Pass on, once, that a rank has begun the program."""
        if has_begun and not self._has_told_begun:
            self._has_told_begun = True
            self._backlog += BEGUN

    def send_exports(self, exports: Iterable[RankExport]) -> None:
        """What ranks handed out, each behind a line that says how long it is."""
        for export in exports:
            self._backlog += export_header(export) + export.body

    def flush(self) -> None:
        """Hand over as much as fits now."""
        while self._backlog and not self.is_broken:
            try:
                sent = self._socket.send(self._backlog, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                self.is_broken = True
                return
            del self._backlog[:sent]

    def drain(self, limit_s: float) -> None:
        """Hand over everything, waiting for the reader at most limit_s."""
        end_s = time.monotonic() + limit_s
        self.flush()
        while self._backlog and not self.is_broken and time.monotonic() < end_s:
            select.select([], [self._socket], [], 0.1)
            self.flush()
