"""Lets stock FSDP1 run on CPU tensors as a lesson writes it, and save what it trained.

May import torch and engine.torch_cpu. The class and its constructor stay the stock ones: functions
that they call are wrapped, so what the constructor warns of points at the learner's line.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import _init_utils, _optim_utils, fully_sharded_data_parallel
from torch.distributed.fsdp._flat_param import FlatParamHandle

from engine.torch_cpu.notes import Notes

P = ParamSpec("P")
R = TypeVar("R")
Bound = inspect.BoundArguments


def adapt_fsdp(notes: Notes) -> None:
    """Take off FSDP1's way what it does for GPUs only, where there is no accelerator."""
    _supply_device_id(notes)
    _lift_sync_check(notes)
    _keep_what_is_offloaded(notes)
    _copy_optimizer_states(notes)


def _supply_device_id(notes: Notes) -> None:
    """Give the device_id=cpu that the constructor asks for.

    It hands its device_id to two functions and nothing else.
    """

    def supply_device(bound: Bound) -> None:
        module = bound.arguments.get("module", bound.arguments.get("fully_sharded_module"))
        device_id = bound.arguments["device_id"]
        if not isinstance(module, nn.Module) or not isinstance(device_id, (int, type(None))):
            return
        if torch.accelerator.is_available() or not _on_cpu_or_meta(module):
            return
        bound.arguments["device_id"] = torch.device("cpu")
        notes.add("fsdp-device-id")

    for name in ("_init_device_handle", "_init_param_handle_from_module"):
        stock = vars(fully_sharded_data_parallel)[name]
        setattr(fully_sharded_data_parallel, name, _adapted(stock, supply_device))


def _lift_sync_check(notes: Notes) -> None:
    """Let sync_module_states=True broadcast what is on CPU: gloo can, and no rank has more.

    Stock asks for a device_id then, which moves the module to its GPU first.
    """
    check = _init_utils._check_module_states_for_sync_module_states

    @functools.wraps(check)
    def passing(module_states: list[Tensor]) -> None:
        if torch.accelerator.is_available():
            check(module_states)
        else:
            notes.add("fsdp-sync-check-lifted")

    _init_utils._check_module_states_for_sync_module_states = passing


def _keep_what_is_offloaded(notes: Notes) -> None:
    """Let offload_to_cpu of parameters move nothing that is on CPU.

    Stock then frees the memory that it believes to have copied from, and reads it: a segmentation
    fault in the recipe of its own documentation (offload_to_cpu=True, rank0_only=True).
    """
    stock = FlatParamHandle.to_cpu

    @functools.wraps(stock)
    def to_cpu(self: FlatParamHandle) -> AbstractContextManager[None]:
        if self.device.type != "cpu":
            return stock(self)
        notes.add("fsdp-offload-on-cpu")
        return nullcontext()

    FlatParamHandle.to_cpu = to_cpu  # type: ignore[method-assign, assignment]


def _copy_optimizer_states(notes: Notes) -> None:
    """Give each gathered optimizer state memory of its own in a full optim_state_dict.

    FSDP gathers one state after the other into the same memory, and keeps each by offloading it to
    CPU. On CPU that copies nothing: exp_avg would silently have the values of exp_avg_sq.
    """
    stock = _optim_utils._unflatten_orig_param_states

    @functools.wraps(stock)
    def unflatten(
        fsdp_param_info: _optim_utils.FSDPParamInfo,
        output_states: dict[str, dict[str, object]],
        state_name: str,
        shard_state: bool,
        to_save: bool,
        cpu_offload: bool,
    ) -> None:
        device = fsdp_param_info.state.compute_device
        if cpu_offload and device is not None and device.type == "cpu":
            cpu_offload = False  # stock clones then
            if to_save and not shard_state:
                notes.add("fsdp-offload-on-cpu")
        stock(fsdp_param_info, output_states, state_name, shard_state, to_save, cpu_offload)

    _optim_utils._unflatten_orig_param_states = unflatten


def _on_cpu_or_meta(module: nn.Module) -> bool:
    return all(p.device.type in ("cpu", "meta") for p in module.parameters())


def _adapted(stock: Callable[P, R], adapt: Callable[[Bound], None]) -> Callable[P, R]:
    """Let `adapt` change the bound arguments of every call once there is a process group."""
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def adapted(*args: P.args, **kwargs: P.kwargs) -> R:
        # Before a group exists the stock function's own error is the one to show.
        if not dist.is_initialized():
            return stock(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        adapt(bound)
        return stock(*bound.args, **bound.kwargs)

    return adapted
