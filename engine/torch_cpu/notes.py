"""Reports each adaptation that a rank really used, once per code. May import engine.events."""

import time
from collections.abc import Callable

from engine.events import Args, NoteReport


class Notes:
    """The notes of one rank; line() tells the learner's line that is running."""

    def __init__(
        self, report: Callable[[NoteReport], None], line: Callable[[], int | None]
    ) -> None:
        self._report = report
        self._line = line
        self._seen: set[str] = set()

    def add(self, code: str, args: Args | None = None) -> None:
        """Report that the adaptation `code` was used, unless this rank already has."""
        if code in self._seen:
            return
        self._seen.add(code)
        self._report(
            NoteReport(at_ns=time.monotonic_ns(), code=code, args=args or {}, line=self._line())
        )
