"""Bytes of model state per parameter: what an optimizer keeps, and in which precision.

May import the standard library only.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from engine.costs.arguments import require_at_least, require_one_of

OptimizerName = Literal["SGD", "SGD-momentum", "Adagrad", "RMSprop", "Adam", "Adam-amsgrad"]
STEP_BYTES = 4
"""torch.optim keeps `step` as one float32 number per parameter tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What one optimizer keeps: tensors of the parameter's size, and a step per tensor or not."""

    name: OptimizerName
    num_states: int
    has_step: bool


def optimizer(name: OptimizerName) -> Optimizer:
    """What the optimizer of that name keeps with torch's defaults; AdamW keeps what Adam keeps.

    Raises: ValueError when name is unknown.
    Source: the state that torch.optim's classes create in their first step(): momentum_buffer;
    sum; square_avg; exp_avg and exp_avg_sq; max_exp_avg_sq with amsgrad.
    """
    require_one_of("optimizer", name, get_args(OptimizerName))
    num_states = {
        "SGD": 0,
        "SGD-momentum": 1,
        "Adagrad": 1,
        "RMSprop": 1,
        "Adam": 2,
        "Adam-amsgrad": 3,
    }[name]
    has_step = name not in ("SGD", "SGD-momentum")
    return Optimizer(name=name, num_states=num_states, has_step=has_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Bytes per parameter of the three model states.

    Raises: ValueError when one is negative.
    """

    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int

    def __post_init__(self) -> None:
        require_at_least("parameter_bytes", self.parameter_bytes, 0)
        require_at_least("gradient_bytes", self.gradient_bytes, 0)
        require_at_least("optimizer_bytes", self.optimizer_bytes, 0)

    @property
    def total_bytes(self) -> int:
        """All model states of one parameter."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes


def uniform(name: OptimizerName, element_bytes: int = 4) -> Precision:
    """One precision for parameters, gradients and optimizer states.

    Raises: ValueError when element_bytes is below 1 or the optimizer unknown.
    Source: torch.optim creates its states with zeros_like(parameter).
    """
    require_at_least("element_bytes", element_bytes, 1)
    return Precision(
        parameter_bytes=element_bytes,
        gradient_bytes=element_bytes,
        optimizer_bytes=element_bytes * optimizer(name).num_states,
    )


def mixed(name: OptimizerName, low_bytes: int = 2) -> Precision:
    """Half-precision parameters and gradients; the optimizer keeps an fp32 copy and fp32 states.

    Raises: ValueError when low_bytes is below 1 or the optimizer unknown.
    Source: arXiv 1910.02054, section 3.1: 2 + 2 + K with K = 12 for Adam.
    """
    require_at_least("low_bytes", low_bytes, 1)
    return Precision(
        parameter_bytes=low_bytes,
        gradient_bytes=low_bytes,
        optimizer_bytes=4 + 4 * optimizer(name).num_states,
    )


MIXED_ADAM = Precision(parameter_bytes=2, gradient_bytes=2, optimizer_bytes=12)
FP32_ADAM = Precision(parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8)
FP32_SGD = Precision(parameter_bytes=4, gradient_bytes=4, optimizer_bytes=0)
FP32_MOMENTUM = Precision(parameter_bytes=4, gradient_bytes=4, optimizer_bytes=4)
