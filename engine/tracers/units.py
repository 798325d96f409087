"""Which FSDP unit a collective serves: FSDP gathers and reduces outside of its modules' forward.

May import torch. Read from FSDP's own frames on this thread's stack: nothing of it is wrapped or
kept, and where torch has renamed a part, the unit is simply not known.
"""

import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType

from torch import nn
from torch.distributed.fsdp import _flat_param, _runtime_utils
from torch.distributed.fsdp._fully_shard import _fsdp_param_group

_MAX_FRAMES = 24
"""FSDP's frame is among the innermost ones: c10d's own lie between it and the kernel."""


class Units:
    """Finds the unit of the call that this thread is in."""

    def __init__(self) -> None:
        group = getattr(_fsdp_param_group, "FSDPParamGroup", None)
        handle = getattr(_flat_param, "FlatParamHandle", None)
        self._places: dict[CodeType, tuple[str, Callable[[object], object]]] = {}
        """Functions of FSDP, the local variable to look at and what it tells."""
        for owner, name, variable, module_of in (
            (group, "unshard", "self", _first_module),
            (group, "post_backward", "self", _first_module),
            (handle, "_all_gather_flat_param", "self", _sharded_module),
            (_runtime_utils, "_reduce_grad", "handle", _sharded_module),
            (_runtime_utils, "_reduce_grad_no_shard", "handle", _sharded_module),
        ):
            function = getattr(owner, name, None)
            code = getattr(function and inspect.unwrap(function), "__code__", None)
            if isinstance(code, CodeType):
                self._places[code] = (variable, module_of)

    def module(self) -> nn.Module | None:
        """The module that the unit shards; None outside of FSDP."""
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_MAX_FRAMES):
            if frame is None:
                return None
            place = self._places.get(frame.f_code)
            if place is not None:
                variable, module_of = place
                found = module_of(frame.f_locals.get(variable))
                return found if isinstance(found, nn.Module) else None
            frame = frame.f_back
        return None


def _first_module(group: object) -> object:
    modules = getattr(group, "modules", None)
    return modules[0] if isinstance(modules, (tuple, list)) and modules else None


def _sharded_module(handle: object) -> object:
    return getattr(handle, "_fully_sharded_module", None)
