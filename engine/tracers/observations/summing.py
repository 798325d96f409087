"""The program's own all_reduce calls: what autograd, or the program itself, makes of the result.

May import torch.
"""

import inspect
import sys
import weakref
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor
from torch._C._distributed_c10d import ProcessGroup, ReduceOp
from torch.distributed import distributed_c10d

from engine.facts import Args
from engine.tracers.c10d import Op, group_ranks, output_tensors
from engine.tracers.observations.digest import is_plain
from engine.tracers.observations.optimizers import Optimizers
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.replicas import Replicas
from engine.tracers.observations.shards import Shards

_MAX_NUMEL = 64
"""Metrics are small; larger tensors are what programs measure collectives with."""
_MAX_LOOKS = 64
_MAX_SUMMED = 32
_SAME = 1e-6
_LOGGER = "torch.distributed.c10d_logger"
_ALL_REDUCE = inspect.unwrap(distributed_c10d.all_reduce).__code__


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One call in the program: its frame is running this instruction."""

    frame: int
    instruction: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summed:
    tensor: weakref.ref[Tensor]
    version: int
    line: int | None


class Summing:
    """What becomes of the results of all_reduce in one rank."""

    def __init__(
        self,
        recorder: Recorder,
        optimizers: Optimizers,
        replicas: Replicas,
        shards: Shards,
        program_filename: str,
    ) -> None:
        self._recorder = recorder
        self._optimizers = optimizers
        self._replicas = replicas
        self._shards = shards
        self._filename = program_filename
        self._said: set[str] = set()
        self._num_left = _MAX_LOOKS
        self._passing: dict[int, weakref.ref[Tensor]] = {}
        self._summed: list[_Summed] = []
        self._summed_step = -1

    # ------------------------------------------------------------------ autograd
    def look_at_graph(self, op: Op, args: tuple[object, ...]) -> None:
        """Find tensors of the graph that the call is going to change unknown to autograd."""
        if "graph" in self._said or op.public != "all_reduce":
            return
        tensors = [t for t in output_tensors(op, args) if t.grad_fn is not None]
        group = args[op.group]
        if not tensors or not isinstance(group, torch.ScriptObject):
            return
        ranks = group_ranks(ProcessGroup.unbox(group))
        trained = {w.ranks for w in self._replicas.wrappers if w.num_forwards}
        trained |= {unit.ranks for unit in self._shards.units}
        # Only over the ranks whose gradients are averaged is the sum known to be wrong: where
        # each rank has a part of the layer, its output is summed so, and backward is right.
        if len(ranks) > 1 and ranks in trained and self._own_call() is not None:
            for tensor in tensors:
                self._watch_graph(tensor, len(ranks))

    def _watch_graph(self, tensor: Tensor, size: int) -> None:
        line, place, numel = self._recorder.position.line(), tensor.output_nr, tensor.numel()

        def passes(gradients: tuple[Tensor | None, ...]) -> None:
            with unnoticed():
                gradient = gradients[place]
                if gradient is None or "graph" in self._said:
                    return
                # A loss that is only shown keeps its gradient; divided by the ranks it does not.
                if numel == 1 and abs(gradient.item() * size - 1) > _SAME:
                    return
                self._said.add("graph")
                self._recorder.say("reduced-in-graph", {"size": size, "numel": numel}, line)

        if tensor.grad_fn is not None:
            tensor.grad_fn.register_prehook(passes)

    # ------------------------------------------------------------------ metrics
    def look_at_metric(self, op: Op, args: tuple[object, ...]) -> None:
        """Find small tensors that nobody keeps, or that were summed just before."""
        if op.public != "all_reduce" or not self._optimizers.num_steps or self._num_left <= 0:
            return
        tensors = output_tensors(op, args)
        if len(tensors) != 1 or not 0 < tensors[0].numel() <= _MAX_NUMEL:
            return
        tensor = tensors[0]
        if not is_plain(tensor) or tensor.requires_grad or not tensor.any():
            return
        call = self._own_call()
        if call is None:
            return
        self._num_left -= 1
        if call.f_locals.get("op") == ReduceOp.SUM:
            self._find_again(op, tensor)
        # Ones and zeros are how programs wait for each other.
        if not (tensor == 1).all() and "temporary" not in self._said:
            self._find_temporary(op, tensor)

    def _find_again(self, op: Op, tensor: Tensor) -> None:
        if self._summed_step != self._optimizers.num_steps:
            self._summed_step, self._summed = self._optimizers.num_steps, []
        line = self._recorder.position.line()
        before = next((s for s in self._summed if s.tensor() is tensor), None)
        if before is not None and before.version == tensor._version and "again" not in self._said:
            self._said.add("again")
            about: Args = {"op": op.public, "first_line": before.line}
            self._recorder.say("summed-again", about, line)
        if before is None and len(self._summed) < _MAX_SUMMED:
            now = _Summed(tensor=weakref.ref(tensor), version=tensor._version, line=line)
            self._summed.append(now)

    def _find_temporary(self, op: Op, tensor: Tensor) -> None:
        """Look whether the tensor dies while the program is still at this very call."""
        storage = tensor.untyped_storage()
        # This handle and the tensor; more are views. Memory of NumPy's cannot be resized.
        if torch._C._storage_Use_Count(storage._cdata) > 2 or not storage.resizable():
            return
        called = self._place()
        if called is None:
            return
        key, name = id(tensor), op.public

        def gone(_: weakref.ref[Tensor]) -> None:
            with unnoticed():
                self._passing.pop(key, None)
                if self._place() == called and "temporary" not in self._said:
                    self._said.add("temporary")
                    self._recorder.say("reduced-temporary", {"op": name}, called.line)

        self._passing[key] = weakref.ref(tensor, gone)

    def _place(self) -> _Place | None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._filename:
            frame = frame.f_back
        if frame is None:
            return None
        return _Place(frame=id(frame), instruction=frame.f_lasti, line=frame.f_lineno)

    def _own_call(self) -> FrameType | None:
        """The frame of torch.distributed.all_reduce, if the program itself called it."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not _ALL_REDUCE:
            frame = frame.f_back
        outer = None if frame is None else frame.f_back
        while outer is not None and outer.f_globals.get("__name__") == _LOGGER:
            outer = outer.f_back
        return frame if outer is not None and outer.f_code.co_filename == self._filename else None
