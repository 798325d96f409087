"""Tells a rank's own failure from the echo of another rank's end. May import events."""

import re

from engine.events import Failure

_ECHO = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|"
    r"Connection refused|recvValue failed|failed to recv",
    re.I,
)
_TIMED_OUT = re.compile(r"Timed out waiting (\d+)ms for|timed out after (\d+)ms", re.I)


def is_echo(failure: Failure) -> bool:
    """Whether the rank only lost a partner: somebody else's end came first."""
    return bool(_ECHO.search(failure.message))


def waited_ms(failure: Failure) -> int | None:
    """How long the rank waited for a partner before its own timeout; None if it did not."""
    found = _TIMED_OUT.search(failure.message)
    return int(next(group for group in found.groups() if group)) if found else None


def is_lost(failure: Failure | None) -> bool:
    """Whether the rank failed only for want of its partners."""
    return failure is not None and (is_echo(failure) or waited_ms(failure) is not None)
