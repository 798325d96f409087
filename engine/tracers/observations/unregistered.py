"""Layers that a wrapped model calls and does not know: kept in a list, not as submodules.

May import torch. Keeps no module and no tensor alive.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from engine.facts import Args
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.replicas import Replicas

_MAX_SEEN = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    module: weakref.ref[nn.Module]
    line: int | None


class Unregistered:
    """Layers with parameters that ran inside of a DDP wrapper and are none of its module's."""

    def __init__(self, recorder: Recorder, replicas: Replicas) -> None:
        self._recorder = recorder
        self._replicas = replicas
        self._seen: dict[int, weakref.ref[nn.Module]] = {}
        self._layers: list[_Layer] = []
        self._has_said = False
        replicas.on_unknown = self._look

    def check(self, is_held: Callable[[Tensor], bool]) -> None:
        """Report the layers that get gradients which no optimizer uses, once."""
        found = [m for layer in self._layers if (m := layer.module()) is not None]
        idle = [m for m in found if any(p.grad is not None for p in _own(m))]
        idle = [m for m in idle if not any(is_held(p) for p in _own(m)) and not self._is_known(m)]
        if idle and not self._has_said:
            self._has_said = True
            line = next(y.line for y in self._layers if y.module() is idle[0])
            args: Args = {"layer": type(idle[0]).__name__, "num": len(idle)}
            self._recorder.say("unregistered", args, line)

    def _look(self, module: nn.Module) -> None:
        ref = self._seen.get(id(module))
        if (ref is not None and ref() is module) or len(self._seen) >= _MAX_SEEN:
            return
        with unnoticed():
            self._seen[id(module)] = weakref.ref(module)
            # In evaluation mode it is a frozen network that only judges the output.
            if not module.training or not _own(module):
                return
            wrappers = [ddp for w in self._replicas.wrappers if (ddp := w.ddp()) is not None]
            if any(self._recorder.position.is_inside(ddp) for ddp in wrappers):
                line = self._recorder.position.line()
                self._layers.append(_Layer(module=weakref.ref(module), line=line))

    def _is_known(self, module: nn.Module) -> bool:
        """Whether a wrapped module has it by now."""
        roots = [m for w in self._replicas.wrappers if (m := w.module()) is not None]
        return any(m is module for root in roots for m in root.modules())


def _own(module: nn.Module) -> list[Tensor]:
    """The parameters of the layer itself that need gradients."""
    return [p for p in module._parameters.values() if p is not None and p.requires_grad]
