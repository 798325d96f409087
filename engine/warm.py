"""Rehearses what torch does lazily, so that forked ranks find it done.

May import torch, and the tracers, which ranks run along with it.

Measured reason: the first optimizer, DDP or fully_shard of a process imports for most of a second;
a run would pay for it on every rank. A rehearsal under the "fake" process group needs no peer and
starts no thread.
"""

import os
import sys
import warnings

import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed.checkpoint.state_dict
import torch.distributed.fsdp
import torch.distributed.optim
import torch.distributed.pipelining
import torch.distributed.tensor.parallel
import torch.utils.data
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import _clear_sharding_prop_cache
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from engine.program import MAX_RANKS
from engine.report_pipe import ReportPipe
from engine.tracers import Prepared
from engine.tracers.rehearsal import rehearsing


def rehearse() -> None:
    """Run small models through every path that the lessons take; leaves no group, no thread.

    Warnings stay for those who cause them: Python gives most of them once only.
    """
    with warnings.catch_warnings(action="ignore"):
        _rehearse()


def _rehearse() -> None:
    torch.set_num_threads(1)
    for optimizer in (torch.optim.SGD, torch.optim.Adam):
        _train(_model(), optimizer)
    world_size = 1
    while world_size <= MAX_RANKS:
        dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
        _communicate()
        mesh = init_device_mesh("cpu", (world_size,))
        for stepper in (torch.optim.AdamW, torch.optim.SGD):
            model = _model()
            for layer in (model[0], model[2]):
                fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
            _train(model, stepper)
        if world_size == 1:
            # Forward only: the fake group's futures have no result for DDP's reducer.
            DistributedDataParallel(_model())(torch.zeros(8, 16))
        dist.destroy_process_group()
        # What DTensor has learned of a shape holds this mesh, with rank 0's place in it.
        _clear_sharding_prop_cache()  # type: ignore[no-untyped-call]  # torch has no type for it
        world_size *= 2
    sys.excepthook = sys.__excepthook__  # init_process_group has put its own there, for rank 0


def _communicate() -> None:
    values = torch.ones(8)
    pieces = [torch.empty(8) for _ in range(dist.get_world_size())]
    dist.all_reduce(values)
    dist.broadcast(values, src=0)
    dist.all_gather(pieces, values)
    dist.all_gather_into_tensor(torch.cat(pieces), values)
    dist.reduce_scatter_tensor(torch.empty(8), torch.cat(pieces))
    dist.barrier()


def rehearse_traced(prepared: Prepared) -> None:
    """Rehearse once more, with the tracers that ranks have; then they are gone again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with rehearsing(prepared, __file__, ReportPipe(nowhere).report):
        rehearse()
    os.close(nowhere)


def rehearse_forward() -> None:
    """Have torch look at this machine's processor; touches no GPU, as any backward would."""
    torch.set_num_threads(1)
    with torch.no_grad():
        _model()(torch.zeros(8, 16))


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))


def _train(model: nn.Module, optimizer: type[torch.optim.Optimizer]) -> None:
    stepper = optimizer(model.parameters(), lr=1e-3)  # type: ignore[call-arg]  # every one has lr
    nn.functional.mse_loss(model(torch.zeros(8, 16)), torch.zeros(8, 4)).backward()  # type: ignore[no-untyped-call]  # torch has no type for it
    stepper.step()
