"""Collectives of the program's own: on which gradients, and whether they were waited for.

May import torch. Looks at calls outside of forward, backward and step only; what DDP, FSDP and
SyncBatchNorm call costs one question more.
"""

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor
from torch._C._distributed_c10d import Work

from engine.facts import Args
from engine.tracers.c10d import Op, output_tensors
from engine.tracers.observations.optimizers import Optimizers
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.replicas import Replicas
from engine.tracers.observations.summing import Summing

Call = Callable[[Op, tuple[object, ...], Callable[[], object]], object]
Waited = Callable[[Work | Tensor], None]
_MAX_WORKS = 16
_LOGGER, _C10D = "c10d_logger", "distributed_c10d"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unwaited:
    work: Work
    """Held until it is waited for, so that the program gets this very object."""
    op: str
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """A gradient that DDP had averaged and the program reduces once more."""

    parameter: weakref.ref[Tensor]
    norm: float
    size: int
    line: int | None


class Reducing:
    """The program's own collectives in one rank."""

    def __init__(
        self,
        recorder: Recorder,
        optimizers: Optimizers,
        replicas: Replicas,
        summing: Summing,
        program_filename: str,
    ) -> None:
        self._recorder = recorder
        self._optimizers = optimizers
        self._replicas = replicas
        self._summing = summing
        self._filename = program_filename
        self._owners: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        """Parameter and number of its optimizer, by the address of the gradient."""
        self._owners_step = -1
        self._said: set[tuple[int, bool]] = set()
        self._again: _Again | None = None
        self._has_looked_again = False
        self._has_aliased = False
        self._unwaited: dict[int, _Unwaited] = {}

    def calling(self, call: Call) -> Call:
        """Stand around what carries out collectives."""

        def watched(op: Op, args: tuple[object, ...], redispatch: Callable[[], object]) -> object:
            if op.public == "all_reduce" and torch.is_grad_enabled():
                with unnoticed():
                    self._summing.look_at_graph(op, args)
            if op.output is None or self._recorder.position.phase() is not None:
                return call(op, args, redispatch)
            with unnoticed():
                self._look_at_gradients(op, args)
                self._look_at_outputs(op, args)
                self._summing.look_at_metric(op, args)
            answer = call(op, args, redispatch)
            with unnoticed():
                self._look_at_work(op, answer)
            return answer

        return watched

    def waiting(self, waited: Waited) -> Waited:
        """Stand around what is told of waits."""

        def watched(what: Work | Tensor) -> None:
            self._unwaited.pop(id(what), None)
            waited(what)

        return watched

    def asked(self, work: object) -> None:
        """The program asked a Work whether it is done, or for its future."""
        self._unwaited.pop(id(work), None)

    def step_begins(self) -> None:
        """Compare the gradient that was reduced again with what the step now uses."""
        again, self._again = self._again, None
        parameter = again.parameter() if again is not None else None
        if again is None or parameter is None or parameter.grad is None:
            return
        norm = torch.linalg.vector_norm(parameter.grad, dtype=torch.float64).item()
        args = {"ratio": norm / again.norm, "size": again.size}
        self._recorder.say("reduced-twice", args, again.line)

    def finish(self) -> None:
        """Report the calls that nobody has waited for."""
        for unwaited in self._unwaited.values():
            self._recorder.say("never-waited", {"op": unwaited.op}, unwaited.line)

    # ------------------------------------------------------------------ gradients
    def _look_at_gradients(self, op: Op, args: tuple[object, ...]) -> None:
        if op.public not in ("all_reduce", "reduce"):
            return
        owners = self._gradients()
        for tensor in output_tensors(op, args) if owners else ():
            ref, number = owners.get(tensor.data_ptr(), (None, 0))
            parameter = ref() if ref is not None else None
            if parameter is None:
                continue
            is_late = self._optimizers.has_stepped_on(number)
            if (number, is_late) not in self._said:
                self._said.add((number, is_late))
                about: Args = {"optimizer": number, "op": op.public, "is_late": int(is_late)}
                self._recorder.say("reduced-by-hand", about, self._recorder.position.line())
            if not self._has_looked_again and op.public == "all_reduce":
                self._look_again(parameter, tensor)

    def _look_at_outputs(self, op: Op, args: tuple[object, ...]) -> None:
        """Report one tensor that is to take what several ranks send."""
        if op.public not in ("all_gather", "gather", "all_to_all") or self._has_aliased:
            return
        places = [t.data_ptr() for t in output_tensors(op, args) if t.numel()]
        if len(set(places)) < len(places):
            self._has_aliased = True
            about: Args = {"op": op.public, "num": len(places)}
            self._recorder.say("aliased-outputs", about, self._recorder.position.line())

    def _look_again(self, parameter: Tensor, gradient: Tensor) -> None:
        """Remember the norm of a gradient that DDP has averaged already."""
        for wrapper in self._replicas.wrappers:
            if wrapper.manages(parameter) and wrapper.num_forwards and wrapper.is_synced:
                norm = torch.linalg.vector_norm(gradient, dtype=torch.float64).item()
                self._has_looked_again = norm > 0
                if norm > 0:
                    self._again = _Again(
                        parameter=weakref.ref(parameter),
                        norm=norm,
                        size=len(wrapper.ranks),
                        line=self._recorder.position.line(),
                    )
                return

    def _gradients(self) -> dict[int, tuple[weakref.ref[Tensor], int]]:
        """Gradients of all optimizers, looked up once per step."""
        if self._owners_step != self._optimizers.num_steps or not self._owners:
            self._owners = {
                gradient.data_ptr(): (weakref.ref(parameter), number)
                for number, parameter, gradient in self._optimizers.gradients()
            }
            self._owners_step = self._optimizers.num_steps
        return self._owners

    # ------------------------------------------------------------------ waits
    def _look_at_work(self, op: Op, answer: object) -> None:
        if len(self._unwaited) >= _MAX_WORKS or not self._is_asynchronous():
            return
        box = answer[-1] if isinstance(answer, tuple) else answer
        if isinstance(box, torch.ScriptObject):
            work, line = Work.unbox(box), self._recorder.position.line()
            self._unwaited[id(work)] = _Unwaited(work=work, op=op.public, line=line)

    def _is_asynchronous(self) -> bool:
        """Whether the program itself made this call, with async_op=True or as irecv."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not _is_of(frame, _C10D):
            frame = frame.f_back
        if frame is None:
            return False
        outer = frame.f_back
        while outer is not None and (_is_of(outer, _LOGGER) or _is_of(outer, _C10D)):
            outer = outer.f_back
        if outer is None or outer.f_code.co_filename != self._filename:
            return False
        return frame.f_locals.get("async_op") is True or frame.f_code.co_name == "irecv"


def _is_of(frame: FrameType, module: str) -> bool:
    return frame.f_globals.get("__name__") == f"torch.distributed.{module}"
