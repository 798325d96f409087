"""Keeps what a tracer does away from the program it traces. May import torch."""

import contextlib
import functools
from collections.abc import Callable
from typing import ParamSpec

import torch

from engine.tracers.compiling import never_compiled

P = ParamSpec("P")


def unnoticed(function: Callable[P, None]) -> Callable[P, None]:
    """Let function look at tensors without calling what their classes have redefined.

    Whatever still goes wrong inside, say in a property of a learner's class, stays there: a run
    must end traced as it would untraced.
    """

    @functools.wraps(function)
    @never_compiled
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with contextlib.suppress(Exception), torch._C.DisableTorchFunctionSubclass():
            function(*args, **kwargs)

    return run
