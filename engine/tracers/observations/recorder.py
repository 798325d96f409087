"""Writes observations, a bounded number per rank. May import engine.facts, reports and torch."""

import contextlib
import time
from collections.abc import Callable, Iterator

import torch
from torch.utils._python_dispatch import _disable_current_modes

from engine.facts import Args
from engine.reports import ObservationReport, Report
from engine.tracers.observations.names import ObservationName
from engine.tracers.position import Position

_MAX_OBSERVATIONS = 400
_MAX_CHARACTERS = 200


class Recorder:
    """The observations of one rank."""

    def __init__(self, report: Callable[[Report], None], position: Position) -> None:
        self.position = position
        self._report = report
        self._num_left = _MAX_OBSERVATIONS

    def say(self, name: ObservationName, args: Args, line: int | None = None) -> None:
        """Report one observation; line is where the program was, if that is known."""
        if self._num_left <= 0:
            return
        self._num_left -= 1
        short = {k: v[:_MAX_CHARACTERS] if isinstance(v, str) else v for k, v in args.items()}
        self._report(ObservationReport(at_ns=time.monotonic_ns(), name=name, args=short, line=line))


@contextlib.contextmanager
def unnoticed() -> Iterator[None]:
    """What runs inside is neither seen by the program's modes nor raised into the program.

    A program may have put anything in the places that observers read; then there is nothing to
    observe, and the program must go on as it would without them.
    """
    with (
        contextlib.suppress(Exception),
        torch.no_grad(),
        _disable_current_modes(),
        torch._C.DisableTorchFunction(),
    ):
        yield
