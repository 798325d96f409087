"""Reports each adaptation that a rank really used, once per code. May import engine.events."""

import time
from collections.abc import Callable

from engine.facts import Args
from engine.reports import NoteReport


class Notes:
    """The notes of one rank; silent until `begin`."""

    def __init__(self) -> None:
        self._report: Callable[[NoteReport], None] | None = None
        self._line: Callable[[], int | None] | None = None
        self._seen: set[str] = set()

    def begin(self, report: Callable[[NoteReport], None], line: Callable[[], int | None]) -> None:
        """Report from now on; line() tells the learner's line that is running."""
        self._report, self._line = report, line

    def add(self, code: str, args: Args | None = None) -> None:
        """Report that the adaptation `code` was used, unless this rank already has."""
        if code in self._seen or self._report is None or self._line is None:
            return
        self._seen.add(code)
        now_ns, line = time.monotonic_ns(), self._line()
        self._report(NoteReport(at_ns=now_ns, code=code, args=args or {}, line=line))
