"""Which parameters optimizers hold, and whether those are the ones of the model that is trained.

May import torch. Keeps no optimizer and no tensor alive.
"""

import weakref
from collections.abc import Iterator

from torch import Tensor
from torch.optim.optimizer import Optimizer

from engine.tracers.observations.known import Known, parameters_of
from engine.tracers.observations.recorder import Recorder
from engine.tracers.observations.replicas import Replicas
from engine.tracers.observations.shards import Shards
from engine.tracers.observations.unregistered import Unregistered


class Holdings:
    """The optimizers that the program made, and what each has ever held."""

    def __init__(self, recorder: Recorder, replicas: Replicas, shards: Shards) -> None:
        self._recorder = recorder
        self._replicas = replicas
        self._shards = shards
        self._unregistered = Unregistered(recorder, replicas)
        self._made: dict[int, tuple[weakref.ref[Optimizer], int | None]] = {}
        """Each optimizer and the line that made it, by its id."""
        self._held: dict[int, weakref.ref[Tensor]] = {}

    def add(self, optimizer: Optimizer) -> None:
        """Take in an optimizer that has just been made."""
        line = self._recorder.position.line()
        self._made[id(optimizer)] = (weakref.ref(optimizer), line)
        self._hold(optimizer)

    def line(self, optimizer: Optimizer) -> int | None:
        """The line that made the optimizer."""
        ref, line = self._made.get(id(optimizer), (None, None))
        return line if ref is not None and ref() is optimizer else None

    def alive(self) -> list[Optimizer]:
        """All optimizers that the program still has."""
        return [o for ref, _ in self._made.values() if (o := ref()) is not None]

    def check(self, known: Known, parameters: list[Tensor]) -> None:
        """Look for parameters that were replaced, or that are another model's."""
        self._find_stale(known, parameters)
        self._find_idle(known, parameters)
        if known.num_steps > 1:
            for optimizer in self.alive():
                self._hold(optimizer)
            self._unregistered.check(self._is_held)

    def _find_stale(self, known: Known, parameters: list[Tensor]) -> None:
        stale = [s for p in parameters if (s := self._shards.replaced(p)) is not None]
        if stale and "stale" not in known.said:
            known.said.add("stale")
            self._recorder.say(
                "stale-parameters",
                {
                    "optimizer_line": known.line,
                    "shard_line": stale[0].line,
                    "by": stale[0].by,
                    "num_stale": len(stale),
                    "num_parameters": len(parameters),
                },
                known.line,
            )

    def _find_idle(self, known: Known, parameters: list[Tensor]) -> None:
        """Keep track of parameters that are no wrapped model's and never have a gradient."""
        managed = list(self._managed())
        theirs = {id(p) for p in managed}
        idle = {id(p): weakref.ref(p) for p in parameters if p.grad is None and id(p) not in theirs}
        if known.num_steps > 1:
            idle = {k: ref for k, ref in idle.items() if k in known.idle}
        known.idle = idle
        if idle:
            for optimizer in self.alive():
                self._hold(optimizer)
            known.num_unheld = sum(
                p.grad is not None and not self._is_held(p) for p in managed if p.requires_grad
            )

    def _hold(self, optimizer: Optimizer) -> None:
        """Remember what an optimizer holds, also when it is gone."""
        self._held.update((id(p), weakref.ref(p)) for p in parameters_of(optimizer))

    def _is_held(self, parameter: Tensor) -> bool:
        ref = self._held.get(id(parameter))
        return ref is not None and ref() is parameter

    def _managed(self) -> Iterator[Tensor]:
        """Parameters of all wrapped and sharded models."""
        for wrapper in self._replicas.wrappers:
            for _, p in wrapper.parameters():
                yield p
        for unit in self._shards.units:
            yield from unit.parameters()
