"""Tells whether an exception comes from a limit whose calls fail, and which; runs inside a rank.

May import facts, reports and the sandbox's limits. The error alone says too little: EAGAIN is also
what an empty socket answers, and a program may raise any of these by hand. So what can be tried is
tried again.
"""

import _thread
import contextlib
import dis
import errno
import os
import re
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from engine.facts import Args
from engine.reports import ObservationReport
from engine.sandbox.limits import data_bytes

LimitName = Literal["processes", "descriptors", "file-size", "scratch", "inodes"]

_MAX_CHAIN = 8
_ROOM_BYTES = 64 * 1024
"""A scratch with less room than this counts as full."""
_NO_THREAD = re.compile(r"can't start new thread|Resource temporarily unavailable", re.I)
_NO_DESCRIPTOR = re.compile(r"Too many open files", re.I)
_NO_ROOM = re.compile(r"No space left on device|inline_container\.cc|PytorchStreamWriter", re.I)
"""The last two are what torch.save says of a write that failed, without the kernel's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A limit at which a call failed."""

    limit: LimitName
    value: int
    """In bytes for file-size and scratch, else how many."""


def report_limit(
    error: BaseException,
    filename: str,
    scratch_bytes: int,
    report: Callable[[ObservationReport], None],
) -> None:
    """Say so when the program failed because a call did at one of its limits."""
    with contextlib.suppress(BaseException):  # the exception and what it looks at are learner code
        reached = reached_limit(error, filename, scratch_bytes)
        if reached is not None:
            args: Args = {"limit": reached.limit, "value": reached.value}
            now_ns = time.monotonic_ns()
            report(ObservationReport(at_ns=now_ns, name="limit-reached", args=args, line=None))


def reached_limit(error: BaseException, filename: str, scratch_bytes: int) -> Reached | None:
    """The limit because of which the program failed; None when there is none, or it is not known.

    filename is the program's; its folder is on the scratch, which scratch_bytes bounds.
    """
    scratch = _Scratch(str(Path(filename).parent), scratch_bytes)
    for cause in _causes(error):
        if _is_raised_by_hand(cause.__traceback__, filename):
            continue
        if found := _limit_of(cause, scratch):
            return found
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those because of which or during whose handling it was raised."""
    cause: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _is_raised_by_hand(traceback: TracebackType | None, filename: str) -> bool:
    """Whether a raise statement of the program itself is where the exception began."""
    if traceback is None:
        return True
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    if code.co_filename != filename:
        return False
    at = traceback.tb_lasti
    return any(i.offset == at and i.opname == "RAISE_VARARGS" for i in dis.get_instructions(code))


def _limit_of(error: BaseException, scratch: "_Scratch") -> Reached | None:
    if isinstance(error, OSError):
        match error.errno:
            case errno.EMFILE:
                return _soft("descriptors", resource.RLIMIT_NOFILE)
            case errno.EFBIG:
                return _soft("file-size", resource.RLIMIT_FSIZE)
            case errno.ENOSPC:
                # What filled the scratch may have been removed on the way out of the program.
                gone = None if _holds_full_device() else scratch.all_bytes()
                return scratch.exhausted() or gone
            case errno.EAGAIN if _no_thread_starts():
                return _soft("processes", resource.RLIMIT_NPROC)
        return None
    if not isinstance(error, RuntimeError):
        return None
    words = str(error)
    if _NO_THREAD.search(words) and _no_thread_starts():
        return _soft("processes", resource.RLIMIT_NPROC)
    if _NO_DESCRIPTOR.search(words):
        return _soft("descriptors", resource.RLIMIT_NOFILE)
    return scratch.exhausted() if _NO_ROOM.search(words) else None


def _soft(limit: LimitName, number: int) -> Reached:
    return Reached(limit=limit, value=resource.getrlimit(number)[0])


class _Scratch:
    """What the run may write to, as it is now."""

    def __init__(self, folder: str, limit_bytes: int) -> None:
        self._now = os.statvfs(folder)
        self._total_bytes = self._now.f_blocks * self._now.f_frsize
        self._is_bounded = self._total_bytes <= limit_bytes  # else it is a disk of the host

    def exhausted(self) -> Reached | None:
        """What it has run out of: files, or bytes; None when there is room for both."""
        if self._is_bounded and self._now.f_files and self._now.f_favail == 0:
            return Reached(limit="inodes", value=self._now.f_files)
        is_full = self._now.f_bavail * self._now.f_frsize < _ROOM_BYTES
        return self.all_bytes() if is_full else None

    def all_bytes(self) -> Reached | None:
        """Its size, where there is no more to be told."""
        return Reached(limit="scratch", value=self._total_bytes) if self._is_bounded else None


def _holds_full_device() -> bool:
    """Whether the program has opened the device that answers every write with ENOSPC."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor that lists this folder
            if str(link.readlink()) == "/dev/full":
                return True
    return False


def _no_thread_starts() -> bool:
    """Whether no further thread starts, and not just for want of memory for its stack."""
    most_bytes, stack_bytes = (
        resource.getrlimit(number)[0] for number in (resource.RLIMIT_DATA, resource.RLIMIT_STACK)
    )
    if most_bytes != resource.RLIM_INFINITY and data_bytes() + stack_bytes > most_bytes:
        return False
    try:
        _thread.start_new_thread(int, ())
    except RuntimeError:
        return True
    return False
