"""Where in the training step this thread is: phase, module and the learner's source line.

May import engine.events and torch. Follows global module and optimizer hooks; keeps no module
alive beyond its own forward.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Protocol

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


class Listener(Protocol):
    """What wants to know when a thread reaches a boundary of a module or phase."""

    def module_entered(self, module: nn.Module, is_outermost: bool) -> None:
        """A module's forward begins."""

    def module_left(self, module: nn.Module) -> None:
        """A module's forward is over; it is still the innermost."""

    def backward_reached(self, is_first: bool) -> None:
        """The backward of a module's outputs begins; is_first: of all in this backward."""

    def backward_ended(self) -> None:
        """A backward is over, and what others had queued for its end is done."""

    def step_began(self, optimizer: Optimizer) -> None:
        """An optimizer's step begins."""

    def step_ended(self, optimizer: Optimizer) -> None:
        """An optimizer's step is over; it is still what runs."""


@dataclass(slots=True, kw_only=True)
class Forward:
    """A module's forward that has begun."""

    module: nn.Module
    name: str | None = None
    """Its qualified name, once somebody has asked."""


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
        self._listener: Listener | None = None
        self.on_backward: Callable[[], None] | None = None
        """Told when a backward reaches the outputs of its first module."""

    def install(self, after_forward: AfterForward, listener: Listener) -> None:
        """Register the hooks; after_forward(module, args, output) runs inside each forward."""
        self._listener = listener

        @never_compiled
        def leave(module: nn.Module, args: tuple[object, ...], output: object) -> None:
            if torch.compiler.is_compiling():  # inlined into a graph: nothing runs here
                return
            if output is not None:  # None: the forward raised
                self._hook_backward(module, output)
                after_forward(module, args, output)
            listener.module_left(module)
            self._leave(module)

        register_module_forward_pre_hook(self._enter)
        register_module_forward_hook(leave, always_call=True)
        register_optimizer_step_pre_hook(self._enter_step)
        register_optimizer_step_post_hook(self._leave_step)

    # ------------------------------------------------------------------ questions
    def line(self) -> int | None:
        """The line of the innermost frame of the learner's program on this thread's stack."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._filename:
                return frame.f_lineno
            frame = frame.f_back
        return None

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
            if top.name is None:
                top.name = self.name(top.module)
            return top.name
        if self._backward is not None and self._backward[0] == torch._C._current_graph_task_id():
            return self._backward[1]
        return None

    def where(self) -> tuple[Phase | None, nn.Module | None]:
        """The phase that this thread is in, and the module whose forward it is in."""
        top = self._top()
        module = top.module if type(top) is Forward else None
        if torch._C._current_graph_task_id() != -1:
            return "backward", module
        if top is None:
            return None, None
        return ("step" if module is None else "forward"), module

    def innermost(self) -> nn.Module | None:
        """The module whose forward this thread is in."""
        top = self._top()
        return top.module if isinstance(top, Forward) else None

    def is_inside(self, module: nn.Module) -> bool:
        """Whether this thread is in the forward of module, however deep."""
        return any(isinstance(e, Forward) and e.module is module for e in self._local.stack)

    def is_outermost(self, module: nn.Module) -> bool:
        """Whether the forward of module is all that this thread is in."""
        stack = self._local.stack
        return len(stack) == 1 and isinstance(e := stack[0], Forward) and e.module is module

    def is_nested_step(self) -> bool:
        """Whether an optimizer's step runs inside of another's, as ZeRO's inner one does."""
        self._top()
        return sum(isinstance(e, Step) for e in self._local.stack) > 1

    def name(self, module: nn.Module) -> str:
        """Qualified name of a module that runs, within the outermost one that was called."""
        # The stack may lack the module's own entry where a graph of torch.compile was left early.
        root = next((e.module for e in self._local.stack if isinstance(e, Forward)), module)
        return self._names.of(module, root, torch._C._current_graph_task_id() != -1)

    def unit_name(self, module: nn.Module) -> str:
        """Qualified name of a module that FSDP works for, whether it runs or not."""
        root = next((e.module for e in self._local.stack if isinstance(e, Forward)), module)
        return self._names.of(module, root, True)

    # ------------------------------------------------------------------ hooks
    def _top(self) -> Forward | Step | None:
        stack = self._local.stack
        while stack and isinstance(top := stack[-1], Step):
            # Post hooks do not run for a step that raised: then its frame has left the stack.
            num_steps = sum(1 for e in stack if type(e) is Step)
            if _num_frames(top.code, num_steps) >= num_steps:
                return top
            stack.pop()
        return stack[-1] if stack else None

    @never_compiled
    def _enter(self, module: nn.Module, args: tuple[object, ...]) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._local.stack
        is_outermost = not stack and torch._C._current_graph_task_id() == -1
        stack.append(Forward(module=module))
        if self._listener is not None:
            self._listener.module_entered(module, is_outermost)

    def _leave(self, module: nn.Module) -> None:
        stack = self._local.stack
        depths = [i for i, e in enumerate(stack) if isinstance(e, Forward) and e.module is module]
        if depths:
            del stack[depths[-1] :]

    @never_compiled
    def _enter_step(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        self._top()  # drops steps that raised
        self._local.stack.append(Step(code=sys._getframe(1).f_code))
        if self._listener is not None:
            self._listener.step_began(optimizer)

    @never_compiled
    def _leave_step(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        if isinstance(self._top(), Step):
            if self._listener is not None:
                self._listener.step_ended(optimizer)
            self._local.stack.pop()

    def _reach(self, name: str) -> None:
        """The backward of the module `name` begins on this thread."""
        task = torch._C._current_graph_task_id()
        is_first = self._backward is None or self._backward[0] != task
        self._backward = (task, name)
        if is_first and self.on_backward is not None:
            self.on_backward()
        if self._listener is None:
            return
        self._listener.backward_reached(is_first)
        if is_first:
            # Queued once more from within, it runs after what DDP and FSDP queue meanwhile.
            engine = torch.autograd.Variable._execution_engine
            ended = self._listener.backward_ended
            engine.queue_callback(lambda: engine.queue_callback(ended))

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
            self._reach(name)

        for node in nodes:
            node.register_prehook(begins)


def _outputs(output: object) -> list[Tensor]:
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, (tuple, list)):
        return [item for item in output if isinstance(item, Tensor)]
    return []


def _num_frames(code: CodeType, most: int) -> int:
    """How many frames of this thread's stack run code, counted up to `most`."""
    frame: FrameType | None = sys._getframe(1)
    found = 0
    while frame is not None and found < most:
        found += frame.f_code is code
        frame = frame.f_back
    return found
