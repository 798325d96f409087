"""Where the program is when something is allocated, and what that suggests it is for.

May import engine.facts, the position and torch.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.facts import Category, Phase
from engine.tracers.memory.ledger import Place
from engine.tracers.memory.owners import is_bucket_setup, makes_buckets
from engine.tracers.position import Position

_SETUP_DEPTH = 9


@dataclass(slots=True, kw_only=True)
class Here:
    """Where the main thread is until the next boundary."""

    task: int
    """The graph task of autograd, -1 outside backward."""
    phase: Phase | None
    module: str | None
    line: int | None = None


class Whereabouts:
    """Answers for each allocation; what cannot change before the next boundary is asked once."""

    def __init__(self, position: Position) -> None:
        self._position = position
        self._here: Here | None = None

    def changed(self) -> None:
        """A boundary of a module or phase has been reached."""
        self._here = None

    def place(self, op: object) -> Place:
        """Where the program is, for something that op makes there."""
        task, position = torch._C._current_graph_task_id(), self._position
        here = self._here
        if here is None or here.task != task:
            here = self._here = Here(task=task, phase=position.phase(), module=position.module())
            # Backward and step are one call of the program each, a forward is many lines of it.
            is_one_call = here.phase in ("backward", "step")
            here.line = position.line() if is_one_call else None
        line = here.line if here.line is not None else position.line()
        return Place(op, here.phase, here.module, line)

    def category(self, args: Sequence[object]) -> Category:
        """What a storage that an op makes now is for, until somebody owns it."""
        phase, module = self._position.where()
        match phase:
            case "forward":
                return "communication" if makes_buckets(module) else "activation"
            case "step":
                return "optimizer"
            case "backward":  # a forward inside it is a recomputation (checkpointing)
                is_forward = module is not None or _builds_graph(args)
                return "activation" if is_forward else "other"
            case None:
                if _builds_graph(args):
                    return "activation"
                return "communication" if _sets_up_buckets() else "other"


def _builds_graph(args: Sequence[object]) -> bool:
    return torch.is_grad_enabled() and any(_needs_gradient(arg) for arg in args)


def _needs_gradient(arg: object) -> bool:
    if isinstance(arg, Tensor):
        return arg.requires_grad
    return isinstance(arg, (list, tuple)) and any(_needs_gradient(item) for item in arg)


def _sets_up_buckets() -> bool:
    frame = sys._getframe(1)
    for _ in range(_SETUP_DEPTH):
        if is_bucket_setup(frame.f_code):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
