"""DTensor under simulation: it neither counts what no rank holds nor believes itself compiled.

May import torch. To learn the shape of a result, DTensor runs an op on fake tensors of global size:
they must not be the simulation's own, which stand for memory. And where a fake mode is on, torch
takes it that a compiler is tracing, and leaves out what real ranks do.
"""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed import _functional_collectives
from torch.distributed.tensor._sharding_prop import ShardingPropagator

P = ParamSpec("P")
R = TypeVar("R")


def adapt_dtensor() -> None:
    """Let DTensor see no mode of the simulation, in this process and for good."""
    asks = ShardingPropagator._propagate_tensor_meta_non_cached
    ShardingPropagator._propagate_tensor_meta_non_cached = _outside(asks)  # type: ignore[method-assign]
    stock = _functional_collectives._are_we_tracing
    adapted = _outside(stock)
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.") and vars(module).get(stock.__name__) is stock:
            setattr(module, stock.__name__, adapted)


def _outside(stock: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(stock)
    def ask(*args: P.args, **kwargs: P.kwargs) -> R:
        with unset_fake_temporarily():
            return stock(*args, **kwargs)

    return ask
