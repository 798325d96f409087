"""The tracers, for a rehearsal in the warm parent, and gone without a trace after it.

May import engine.tracers and torch. What Python and torch prepare when code runs for the first time
(specialised bytecode, lazily made objects) then lies in memory that every rank shares; each would
otherwise write its own copy of it, five megabytes of them.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

from torch.nn.modules import module
from torch.optim import optimizer

from engine.reports import Report
from engine.tracers import Prepared, Tracers

H = TypeVar("H")


def _kept(hooks: dict[int, H]) -> Callable[[], None]:
    """Remember what torch calls for every module or optimizer; the answer puts that back."""
    before = dict(hooks)

    def restore() -> None:
        hooks.clear()
        hooks.update(before)

    return restore


@contextlib.contextmanager
def rehearsing(
    prepared: Prepared, program_filename: str, report: Callable[[Report], None]
) -> Iterator[None]:
    """Trace within the context as in a rank that runs the program of that name."""
    restorers = (
        _kept(module._global_forward_pre_hooks),
        _kept(module._global_forward_hooks),
        _kept(module._global_forward_hooks_always_called),
        _kept(optimizer._global_optimizer_pre_hooks),
        _kept(optimizer._global_optimizer_post_hooks),
    )
    with warnings.catch_warnings():
        traced = Tracers(report, program_filename, prepared, device="cpu", detail="summary")
        try:
            yield
            traced.end()
        finally:
            traced.remove(prepared)
            for restore in restorers:
                restore()
