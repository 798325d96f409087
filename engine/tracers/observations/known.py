"""One optimizer that has stepped, and its parameters. May import torch."""

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from torch import Tensor
from torch.optim.optimizer import Optimizer

from engine.tracers.observations.digest import is_plain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Version:
    """A tensor, and how often it had been written."""

    tensor: weakref.ref[Tensor]
    count: int

    def is_of(self, other: "Version | None") -> bool:
        """Whether the other is the same tensor, unchanged."""
        if other is None or self.count != other.count:
            return False
        tensor = self.tensor()
        return tensor is not None and tensor is other.tensor()


@dataclass(slots=True, kw_only=True)
class Known:
    """One optimizer that has stepped."""

    number: int
    line: int | None
    """Where it was made."""
    optimizer: weakref.ref[Optimizer]
    num_steps: int = 0
    step_line: int | None = None
    has_stepped_on: bool = True
    """Whether a step has used the gradients that are there now."""
    zero_line: int | None = None
    """Where gradients were dropped that no step had used."""
    idle: dict[int, weakref.ref[Tensor]] = field(default_factory=dict)
    """Parameters of no wrapped model, without a gradient at every checked step so far."""
    num_unheld: int = 0
    """Parameters of a wrapped model with a gradient that no optimizer has ever held."""
    num_parameters: int = 0
    num_sharded: int = 0
    used: Version | None = None
    """A gradient that the newest step used."""
    is_uncleared: bool = False
    """Whether the newest backward adds to gradients that a step has used."""
    num_uncleared: int = 0
    """Steps on such sums."""
    said: set[str] = field(default_factory=set)
    kinds: dict[str, list[weakref.ref[Tensor]]] = field(default_factory=dict)
    """Replicated parameters by kind, as of the newest checked step."""
    is_over: bool = False

    def tensors(self, kind: str) -> list[Tensor]:
        """The live parameters of a kind."""
        return [p for ref in self.kinds.get(kind, ()) if (p := ref()) is not None]


def parameters_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """Everything that the optimizer updates."""
    for group in optimizer.param_groups:
        yield from group["params"]


def version_of(parameters: Iterable[Tensor]) -> Version | None:
    """The first gradient as it is now."""
    first = next((p.grad for p in parameters if p.grad is not None), None)
    return None if first is None else Version(tensor=weakref.ref(first), count=first._version)


def has_values(gradient: Tensor | None) -> bool:
    """Whether there is a gradient, and it is not zero everywhere."""
    return gradient is not None and (not is_plain(gradient) or bool(gradient.any()))
