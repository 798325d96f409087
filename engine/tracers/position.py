"""Where in the training step this thread is: phase, module and the learner's source line.

May import engine.events and torch. Follows global module and optimizer hooks; keeps no module
alive beyond its own forward.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from engine.facts import Phase
from engine.tracers.compiling import never_compiled
from engine.tracers.names import Names

AfterForward = Callable[[nn.Module, tuple[object, ...], object], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """A module's forward that has begun."""

    module: nn.Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An optimizer's step that has begun; code is that of torch's frame around it."""

    code: CodeType


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[Forward | Step] = []


class Position:
    """The position of each thread in the learner's program."""

    def __init__(self, program_filename: str) -> None:
        self._filename = program_filename
        self._local = _Local()
        self._names = Names()
        self._backward: tuple[int, str] | None = None
        """The graph task that runs and the module whose backward began last in it."""

    def install(self, after_forward: AfterForward) -> None:
        """Register the hooks; after_forward(module, args, output) runs inside each forward."""

        @never_compiled
        def leave(module: nn.Module, args: tuple[object, ...], output: object) -> None:
            if torch.compiler.is_compiling():  # inlined into a graph: nothing runs here
                return
            if output is not None:  # None: the forward raised
                self._hook_backward(module, output)
                after_forward(module, args, output)
            self._leave(module)

        register_module_forward_pre_hook(self._enter)
        register_module_forward_hook(leave, always_call=True)
        register_optimizer_step_pre_hook(self._enter_step)
        register_optimizer_step_post_hook(self._leave_step)
        # A learner can do nothing about these hooks.
        warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global")

    # ------------------------------------------------------------------ questions
    def line(self) -> int | None:
        """The line of the innermost frame of the learner's program on this thread's stack."""
        return next((f.f_lineno for f in _frames() if f.f_code.co_filename == self._filename), None)

    def phase(self) -> Phase | None:
        """The phase that this thread is in."""
        if torch._C._current_graph_task_id() != -1:
            return "backward"
        top = self._top()
        if top is None:
            return None
        return "forward" if isinstance(top, Forward) else "step"

    def module(self) -> str | None:
        """Qualified name of the module that runs: forward, or the backward of its outputs."""
        top = self._top()
        if isinstance(top, Forward):
            return self.name(top.module)
        if self._backward is not None and self._backward[0] == torch._C._current_graph_task_id():
            return self._backward[1]
        return None

    def name(self, module: nn.Module) -> str:
        """Qualified name of a module that runs, within the outermost one that was called."""
        # The stack may lack the module's own entry where a graph of torch.compile was left early.
        root = next((e.module for e in self._local.stack if isinstance(e, Forward)), module)
        return self._names.of(module, root, torch._C._current_graph_task_id() != -1)

    # ------------------------------------------------------------------ hooks
    def _top(self) -> Forward | Step | None:
        stack = self._local.stack
        while stack and isinstance(top := stack[-1], Step):
            # Post hooks do not run for a step that raised: then its frame has left the stack.
            num_steps = sum(isinstance(e, Step) for e in stack)
            if sum(f.f_code is top.code for f in _frames()) >= num_steps:
                return top
            stack.pop()
        return stack[-1] if stack else None

    @never_compiled
    def _enter(self, module: nn.Module, args: tuple[object, ...]) -> None:
        if not torch.compiler.is_compiling():
            self._local.stack.append(Forward(module=module))

    def _leave(self, module: nn.Module) -> None:
        stack = self._local.stack
        depths = [i for i, e in enumerate(stack) if isinstance(e, Forward) and e.module is module]
        if depths:
            del stack[depths[-1] :]

    @never_compiled
    def _enter_step(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        self._top()  # drops steps that raised
        self._local.stack.append(Step(code=sys._getframe(1).f_code))

    @never_compiled
    def _leave_step(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        if isinstance(self._top(), Step):
            self._local.stack.pop()

    def _hook_backward(self, module: nn.Module, output: object) -> None:
        """Note when the backward of this leaf module begins; the hook holds only its name."""
        if module._modules or not torch.is_grad_enabled():
            return
        nodes = [t.grad_fn for t in _outputs(output) if t.grad_fn is not None]
        if not nodes:
            return
        name = self.name(module)

        @never_compiled
        def begins(_: object) -> None:
            self._backward = (torch._C._current_graph_task_id(), name)

        for node in nodes:
            node.register_prehook(begins)


def _outputs(output: object) -> list[Tensor]:
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, (tuple, list)):
        return [item for item in output if isinstance(item, Tensor)]
    return []


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
