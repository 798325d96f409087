"""Lets stock SyncBatchNorm and DDP run on CPU tensors as a lesson writes them.

May import torch and engine.torch_cpu. Classes stay the stock classes: only methods on them are
wrapped, so isinstance, subclasses, signatures and pickles are unaffected.
"""

import functools
import re
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from engine.torch_cpu.kernels import HALF_DTYPES
from engine.torch_cpu.notes import Notes


def adapt_sync_batch_norm(notes: Notes) -> None:
    """Lift SyncBatchNorm's two device checks: its own, and the one in DDP's constructor."""
    accept_cpu(nn.SyncBatchNorm.forward)
    nn.SyncBatchNorm.forward = _empty_in_float32(  # type: ignore[method-assign, assignment]
        nn.SyncBatchNorm.forward
    )
    check = DistributedDataParallel._passing_sync_batchnorm_handle

    @functools.wraps(check)
    def passing(self: DistributedDataParallel, module: nn.Module) -> None:
        if self.device_type != "cpu":
            check(self, module)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        elif any(isinstance(layer, nn.SyncBatchNorm) for layer in module.modules()):
            notes.add("ddp-syncbn-check-lifted")

    DistributedDataParallel._passing_sync_batchnorm_handle = passing  # type: ignore[method-assign]


def accept_cpu(forward: Callable[[nn.SyncBatchNorm, Tensor], Tensor]) -> None:
    """Put "cpu" in place of "hpu" among the device types that `forward` accepts.

    Swapping that one constant keeps the stock function, its line numbers and everything that
    refers to it; no rank of ours has an HPU.
    """
    code = forward.__code__
    places = [
        (i, const)
        for i, const in enumerate(code.co_consts)
        if const == "hpu" or (isinstance(const, tuple) and "hpu" in const)
    ]
    if len(places) != 1:
        raise AssertionError("SyncBatchNorm.forward is not the one that this was written for")
    index, const = places[0]
    swapped = (
        "cpu"
        if isinstance(const, str)
        else tuple("cpu" if name == "hpu" else name for name in const)
    )
    consts = (*code.co_consts[:index], swapped, *code.co_consts[index + 1 :])
    forward.__code__ = code.replace(co_consts=consts)


def _empty_in_float32(
    stock: Callable[[nn.SyncBatchNorm, Tensor], Tensor],
) -> Callable[[nn.SyncBatchNorm, Tensor], Tensor]:
    """Let a rank with an empty half input send float32 statistics as the other ranks do.

    The stock autograd function sends the empty rank's zeros in the input's own dtype; peers
    send float32, and gloo aborts the process on the mismatch.
    """

    @functools.wraps(stock)
    def forward(self: nn.SyncBatchNorm, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        if self.training and input.dtype in HALF_DTYPES and input.numel() == 0:
            return stock(self, input.float()).to(input.dtype)
        return stock(self, input)

    return forward


def adapt_ddp(notes: Notes) -> None:
    """Drop the device_ids and output_device that DDP does not take for a module on CPU.

    The constructor refuses them by _log_and_throw and, had that returned, would go on without
    them. More than one id, and devices by name, stay the errors that they are in stock DDP.
    """
    throw = DistributedDataParallel._log_and_throw
    refusal = re.compile(
        r"DistributedDataParallel device_ids and output_device arguments .*"
        r"but got device_ids (None|\[\d*\]), output_device (None|\d+),",
    )

    @functools.wraps(throw)
    def log_and_throw(
        self: DistributedDataParallel, err_type: type[Exception], err_msg: str
    ) -> None:
        refused = refusal.match(err_msg)
        if refused and self.device_type == "cpu":
            device_ids, output_device = refused.groups()
            asked = device_ids if device_ids != "None" else f"[{output_device}]"
            notes.add("device-ids-dropped", {"device_ids": asked})
            return
        throw(self, err_type, err_msg)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    DistributedDataParallel._log_and_throw = log_and_throw  # type: ignore[method-assign]
