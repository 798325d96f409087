"""Writes the reports of one rank to its trace pipe. May import engine.reports and engine.wire."""

import os
import threading

from engine.reports import MemoryReport, Report
from engine.wire import encode

_MOST_WAITING = 16


class ReportPipe:
    """Stops silently when the learner's program has closed the pipe.

    Reports of memory wait for the next other report, since each write wakes the supervisor: they
    tell how a picture goes on, and whatever they could explain comes with a report of its own.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._is_open = True
        self._waiting: list[str] = []
        self._write = os.write  # the program may put something else there
        os.register_at_fork(after_in_child=self._close)  # a child's reports are not the rank's

    def report(self, report: Report) -> None:
        """Write a report, or let it wait; from any thread."""
        line = encode(report)
        with self._lock:
            self._waiting.append(line)
            if isinstance(report, MemoryReport) and len(self._waiting) < _MOST_WAITING:
                return
            data = ("\n".join(self._waiting) + "\n").encode("ascii")
            self._waiting.clear()
            try:
                while data and self._is_open:
                    data = data[self._write(self._descriptor, data) :]
            except OSError:
                self._is_open = False

    def _close(self) -> None:
        self._lock = threading.Lock()
        self._waiting = []
        self._is_open = False
