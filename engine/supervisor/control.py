"""What init says on its pipe. May import errors and program.

Only init holds that pipe, and it reads nothing that a rank wrote. Nonetheless it may die in the
middle of a line, and what watches a run must end well whatever arrives.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import WireError
from engine.program import MAX_RANKS

MAX_LINE_BYTES = 4096
_MAX_PID = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Pids:
    """The ranks have their program; their pids, as init sees them, by rank."""

    rank_of_pid: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A rank is over."""

    rank: int
    exit: int
    """Negative for a signal."""
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """There will be no sandbox."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The sandbox waits for its program."""


Said = Pids | Ended | Failed | Ready


class ControlLines:
    """Makes what init says of the bytes of its pipe."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Said]:
        """What has been said whole by now. Raises: WireError."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise WireError("init does not end its line")
        return [decode_said(line) for line in lines]


def decode_said(line: bytes) -> Said:
    """What one line of init says. Raises: WireError."""
    if len(line) > MAX_LINE_BYTES:
        raise WireError("a line of init is too long")
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError("a line of init is no JSON") from None
    match said:
        case {"parked": int()}:
            return Ready()
        case {"failed": str(why)}:
            return Failed(why=why)
        case {"pids": dict(pids)}:
            return Pids(rank_of_pid={_within(p, 1, _MAX_PID): _rank(r) for r, p in pids.items()})
        case {"ended": rank, "exit": code, "cpu_s": int() | float() as cpu_s} if 0 <= cpu_s < 1e9:
            return Ended(rank=_rank(rank), exit=_within(code, -64, 255), cpu_s=float(cpu_s))
    raise WireError("init says what is not known")


def _rank(said: object) -> int:
    """A rank, which is a word where it is a key."""
    is_key = isinstance(said, str) and said.isdecimal() and said.isascii() and len(said) == 1
    return _within(int(said) if is_key and isinstance(said, str) else said, 0, MAX_RANKS - 1)


def _within(said: object, least: int, most: int) -> int:
    if type(said) is not int or not least <= said <= most:
        raise WireError("init says a number that cannot be")
    return said
