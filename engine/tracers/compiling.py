"""Keeps torch.compile and warnings away from the tracers' own code. May import torch."""

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
_INTERNAL = " (importlib._bootstrap)"
"""What `warnings` knows the frames by that it does not count."""


def never_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Let torch.compile run function, and what it calls, as they are.

    torch.compiler.disable would do the same but imports the compiler, which takes a second.
    """
    if not isinstance(function, FunctionType):
        raise AssertionError("only a plain function has code of its own")
    skip = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    set_code_exec_strategy(function.__code__, skip)
    return function


def passed_over(function: Callable[P, R]) -> Callable[P, R]:
    """Let warnings.warn(stacklevel=...) in what function calls not count function's frame.

    torch counts from its own function to the program's line; a wrapper between the two would have
    the warning point at the wrapper. The file's name still begins with the real one.
    """
    if not isinstance(function, FunctionType):
        raise AssertionError("only a plain function has code of its own")
    code = function.__code__
    function.__code__ = code.replace(co_filename=code.co_filename + _INTERNAL)
    return function
