"""Keeps torch.compile away from the tracers' own code. May import torch."""

from collections.abc import Callable
from types import FunctionType
from typing import ParamSpec, TypeVar

from torch._C._dynamo.eval_frame import (
    _FrameAction,
    _FrameExecStrategy,
    set_code_exec_strategy,
)

P = ParamSpec("P")
R = TypeVar("R")


def never_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Let torch.compile run function, and what it calls, as they are.

    torch.compiler.disable would do the same but imports the compiler, which takes a second.
    """
    if not isinstance(function, FunctionType):
        raise AssertionError("only a plain function has code of its own")
    skip = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    set_code_exec_strategy(function.__code__, skip)
    return function
