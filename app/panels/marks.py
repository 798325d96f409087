"""Where the editor marks what failed, in the columns that the editor counts.

Owns FailureMark. May import contexts and the engine's events.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from app.panels.contexts import DiagnosisView, FailureMark
from engine.events import Failure, RankEnd

MAX_TEXT = 500


def failure_marks(
    source: str, ends: Sequence[RankEnd], diagnosis: Sequence[DiagnosisView]
) -> tuple[FailureMark, ...]:
    """Mark each place where a rank's program raised, once; else the lines that diagnoses name."""
    lines = source.split("\n")
    found: dict[tuple[int, int | None, str], FailureMark] = {}
    for end in ends:
        if end.failure is not None and end.failure.line is not None:
            mark = _of_failure(lines, end.rank, end.failure, end.failure.line)
            found.setdefault((mark.line, mark.column, mark.text), mark)
    if found:
        return tuple(found.values())
    return tuple(
        FailureMark(
            line=item.line,
            column=None,
            end_line=None,
            end_column=None,
            text=item.text,
            rank=-1 if item.rank is None else item.rank,
        )
        for item in diagnosis
        if item.line is not None
    )


def encode_marks(marks: Sequence[FailureMark]) -> str:
    """Encode marks for the editor: a JSON list of objects with the fields of FailureMark."""
    return json.dumps([asdict(mark) for mark in marks], separators=(",", ":"))


def utf16_column(text: str, column: int) -> int:
    """Turn a column in code points into one in UTF-16 code units, as browsers count."""
    return len(text[:column].encode("utf-16-le", errors="surrogatepass")) // 2


def _of_failure(lines: Sequence[str], rank: int, failure: Failure, line: int) -> FailureMark:
    message = f"{failure.type}: {failure.message}" if failure.message else failure.type
    end_line = failure.end_line if failure.end_line is not None else line
    return FailureMark(
        line=line,
        column=_column(lines, line, failure.column),
        end_line=failure.end_line,
        end_column=_column(lines, end_line, failure.end_column),
        text=message[:MAX_TEXT],
        rank=rank,
    )


def _column(lines: Sequence[str], line: int, column: int | None) -> int | None:
    if column is None or not 1 <= line <= len(lines):
        return None
    return utf16_column(lines[line - 1], column)
