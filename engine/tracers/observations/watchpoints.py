"""Places in torch that observers stand at: wrapped once in the warm parent, silent until used.

May import torch. Every wrapped callable is the stock one with somebody told before or after it;
classes stay the stock classes. What the program passes, gets and sees raised or warned of is
unchanged.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import torch
from torch import nn
from torch._C._distributed_c10d import Work
from torch.distributed.fsdp._flat_param import FlatParamHandle
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad
from torch.optim.optimizer import Optimizer
from torch.utils.data import DistributedSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from engine.tracers.compiling import never_compiled, passed_over

P = ParamSpec("P")
R = TypeVar("R")
Before = Callable[[tuple[object, ...], Mapping[str, object]], None]
After = Callable[[object, tuple[object, ...], Mapping[str, object]], None]


@dataclass(slots=True)
class Watchpoint:
    """Who is told of one callable: before it runs, and after it has returned or raised."""

    before: Before | None = None
    after: After | None = None
    """Given what was returned, or the exception."""


class Watchpoints:
    """Everything that observers can be told of."""

    def __init__(self) -> None:
        self.ddp_made = Watchpoint()
        self.flat_parameter_made = Watchpoint()
        self.flat_parameter_sharded = Watchpoint()
        self.sharded_group_made = Watchpoint()
        self.optimizer_made = Watchpoint()
        self.gradients_zeroed = Watchpoint()
        self.gradients_clipped = Watchpoint()
        self.scaler_steps = Watchpoint()
        self.state_loaded = Watchpoint()
        self.saved = Watchpoint()
        self.state_consolidated = Watchpoint()
        self.zero_state_read = Watchpoint()
        self.sampler_started = Watchpoint()
        self.batch_loaded = Watchpoint()
        self.converted = Watchpoint()
        self.work_asked = Watchpoint()

    def forget_all(self) -> None:
        """Tell nobody any more."""
        for point in vars(self).values():
            point.before = point.after = None

    def put_in_place(self) -> None:
        """Wrap the stock callables, in this process and all that fork from it."""
        for owner, name, point in (
            (DistributedDataParallel, "__init__", self.ddp_made),
            (FlatParamHandle, "__init__", self.flat_parameter_made),
            (FlatParamHandle, "shard", self.flat_parameter_sharded),
            (FSDPParamGroup, "__init__", self.sharded_group_made),
            (Optimizer, "__init__", self.optimizer_made),
            (Optimizer, "zero_grad", self.gradients_zeroed),
            (nn.Module, "zero_grad", self.gradients_zeroed),
            (nn.Module, "load_state_dict", self.state_loaded),
            (DistributedSampler, "__iter__", self.sampler_started),
            (_BaseDataLoaderIter, "__next__", self.batch_loaded),
            (torch.amp.GradScaler, "step", self.scaler_steps),
            (ZeroRedundancyOptimizer, "consolidate_state_dict", self.state_consolidated),
            (ZeroRedundancyOptimizer, "state_dict", self.zero_state_read),
            (Work, "is_completed", self.work_asked),
            (Work, "get_future", self.work_asked),
        ):
            setattr(owner, name, _watched(vars(owner)[name], point))
        clip_grad._clip_grads_with_norm_ = _watched(
            clip_grad._clip_grads_with_norm_, self.gradients_clipped
        )
        # Its public name, which torch keeps apart.
        setattr(nn.utils, "clip_grads_with_norm_", clip_grad._clip_grads_with_norm_)  # noqa: B010
        torch.save = torch.serialization.save = _watched(torch.save, self.saved)
        stock = vars(nn.SyncBatchNorm)["convert_sync_batchnorm"].__func__
        setattr(  # noqa: B010 - an assignment would make it a plain method for the type checker
            nn.SyncBatchNorm, "convert_sync_batchnorm", classmethod(_watched(stock, self.converted))
        )


def _watched(stock: Callable[P, R], point: Watchpoint) -> Callable[P, R]:
    @functools.wraps(stock)
    @never_compiled
    @passed_over
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if point.before is not None:
            point.before(args, kwargs)
        try:
            answer = stock(*args, **kwargs)
        except BaseException as error:
            if point.after is not None:
                point.after(error, args, kwargs)
            raise
        if point.after is not None:
            point.after(answer, args, kwargs)
        return answer

    return call
