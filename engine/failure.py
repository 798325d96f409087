"""Describes the exception that ended a program, in terms of the learner's own source.

May import events and the standard library; runs inside a rank.
"""

import contextlib
import linecache
import sys
from pathlib import Path
from types import TracebackType

from engine.events import Failure, Frame

_MAX_MESSAGE = 4000
_MAX_FRAMES = 40
_MAX_NAME = 200


def trim(traceback: TracebackType | None, filename: str) -> TracebackType | None:
    """The traceback from the learner's first frame on, without the engine's own frames.

    What lies above that frame is the engine that started the program; what lies below may be a
    tracer that stood between the program and torch.
    """
    frames = _walk(traceback)
    while frames and frames[0].tb_frame.f_code.co_filename != filename:
        frames.pop(0)
    engine = str(Path(__file__).parent)
    trimmed = None
    for frame in reversed(frames):
        if not frame.tb_frame.f_code.co_filename.startswith(engine):
            trimmed = TracebackType(trimmed, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return trimmed


def sendable(text: str) -> str:
    """The text without lone surrogates, which no JSON reader takes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def words_of(error: BaseException) -> str:
    """The exception's message, or what its own __str__ did instead of giving one."""
    try:
        return sendable(str(error))
    except BaseException as inner:  # noqa: BLE001 - __str__ is learner code and may do anything
        return f"<its __str__ raised {type(inner).__name__}>"


def show(error: BaseException, filename: str) -> None:
    """Print the traceback as the interpreter would, through the program's own hook if it has one.

    A hook that fails itself is passed over, as the interpreter does.
    """
    shown = error.with_traceback(trim(error.__traceback__, filename))
    for hook in (sys.excepthook, sys.__excepthook__):
        with contextlib.suppress(BaseException):  # the hook and __str__ are learner code
            hook(type(shown), shown, shown.__traceback__)
            return


def exit_code(error: SystemExit) -> int:
    """What the interpreter would exit with for sys.exit(...); prints what is no number."""
    match error.code:
        case None:
            return 0
        case int(number):
            return number & 0xFF if abs(number) < 1 << 31 else 0xFF
        case _:
            with contextlib.suppress(BaseException):  # its __str__ is learner code
                print(error.code, file=sys.stderr)  # noqa: T201 - what Python itself does
            return 1


def describe(error: BaseException, filename: str) -> Failure:
    """Type, message and place of an exception in the program `filename`."""
    message = words_of(error)[:_MAX_MESSAGE]
    name = sendable(type(error).__name__)[:_MAX_NAME]
    if isinstance(error, SyntaxError) and error.filename == filename:
        start = None if error.offset is None else max(error.offset - 1, 0)
        end = error.end_offset - 1 if error.end_offset else None
        return Failure(
            type=name,
            message=sendable(str(error.msg))[:_MAX_MESSAGE],
            line=error.lineno,
            column=start,
            end_line=error.end_lineno or error.lineno,
            end_column=end if end is not None and end > (start or 0) else None,
            frames=(),
        )
    frames = [t for t in _walk(error.__traceback__) if t.tb_frame.f_code.co_filename == filename]
    line, column, end_line, end_column = _place(frames[-1]) if frames else (None,) * 4
    return Failure(
        type=name,
        message=message,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        frames=tuple(
            Frame(line=t.tb_lineno, function=sendable(t.tb_frame.f_code.co_name)[:_MAX_NAME])
            for t in frames[-_MAX_FRAMES:]
        ),
    )


def _walk(traceback: TracebackType | None) -> list[TracebackType]:
    found = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _place(frame: TracebackType) -> tuple[int | None, int | None, int | None, int | None]:
    """Line and character columns of the instruction that raised; columns None if unknown."""
    code = frame.tb_frame.f_code
    positions = list(code.co_positions())
    index = frame.tb_lasti // 2
    if not 0 <= index < len(positions):
        return frame.tb_lineno, None, None, None
    line, end_line, column, end_column = positions[index]
    if line is None:
        return frame.tb_lineno, None, None, None
    return (
        line,
        _characters(code.co_filename, line, column),
        end_line,
        _characters(code.co_filename, end_line, end_column),
    )


def _characters(filename: str, line: int | None, byte_column: int | None) -> int | None:
    """co_positions counts UTF-8 bytes; people and editors count characters."""
    if line is None or byte_column is None:
        return None
    encoded = linecache.getline(filename, line).encode("utf-8", "surrogatepass")
    return len(encoded[:byte_column].decode("utf-8", "replace"))
