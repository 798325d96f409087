"""DistributedDataParallel under simulation: the integers that its C++ code reads are real.

May import torch and engine.simulate. The reducer compares parameter shapes, agrees on the order of
its buckets and marks used parameters in small integer tensors, whose memory it reads directly.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch.distributed as dist
from torch._C._distributed_c10d import Reducer
from torch.nn.parallel import DistributedDataParallel

from engine.simulate.mode import SimulationMode

P = ParamSpec("P")
R = TypeVar("R")


def adapt_ddp(mode: SimulationMode) -> None:
    """Let the C++ parts of DDP have real integers, in this process and for good."""

    def with_real_integers(stock: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(stock)
        def adapted(*args: P.args, **kwargs: P.kwargs) -> R:
            before, mode.has_real_integers = mode.has_real_integers, True
            try:
                return stock(*args, **kwargs)
            finally:
                mode.has_real_integers = before

        return adapted

    for owner, name in (
        (dist, "_verify_params_across_processes"),
        (DistributedDataParallel, "_ddp_init_helper"),
        (Reducer, "_rebuild_buckets"),
    ):
        setattr(owner, name, with_real_integers(getattr(owner, name)))
