"""Calls every kind of collective on 3 ranks. `# name` at a line's end is how a test finds it."""

import contextlib

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, distribute_tensor
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 - as learners write it
from torch.utils.checkpoint import checkpoint

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
ones = torch.ones(4)

dist.all_reduce(ones)  # all_reduce
dist.all_gather([torch.empty(13) for _ in range(world)], torch.ones(13))  # all_gather
dist.all_gather_single(torch.empty(4 * world), ones)  # all_gather into
dist.reduce_scatter_single(torch.empty(4), torch.ones(4 * world))  # reduce_scatter
dist.reduce_scatter(torch.empty(2), [torch.ones(2) for _ in range(world)])  # reduce_scatter list
dist.broadcast(ones, src=1)  # broadcast
dist.reduce(ones, dst=1)  # reduce
dist.gather(ones, [torch.empty(4) for _ in range(world)] if rank == 1 else None, dst=1)  # gather
dist.scatter(ones, [ones] * world if rank == 1 else None, src=1)  # scatter
dist.all_to_all_single(torch.empty(6), torch.ones(6))  # all_to_all
dist.barrier()  # barrier
dist.monitored_barrier()  # monitored_barrier
with torch.inference_mode():
    dist.all_reduce(torch.ones(4, dtype=torch.bfloat16))  # inference
dist.all_gather_object([None] * world, "text")  # object
if rank == 0:
    dist.send(ones, dst=2)  # send
if rank == 2:
    dist.recv(ones, src=0)  # recv
pair = dist.new_group([2, 1])
if rank != 0:
    dist.all_reduce(ones, group=pair)  # subset
    if rank == 1:
        dist.send(ones, dst=2, group=pair)  # send in pair
    else:
        dist.recv(ones, group=pair)  # recv any
later = dist.all_reduce(ones, async_op=True)  # async
later.wait()
reduced = fc.reduce_scatter_single(torch.ones(6), "sum", 0, dist.group.WORLD)  # functional
reduced = reduced + 1

try:
    dist.all_gather([torch.empty(1), torch.empty(2)], torch.ones(1))  # refused
except (RuntimeError, ValueError):
    dist.all_reduce(ones)  # after refused


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        hidden = checkpoint(self.inner, x, use_reentrant=False) if CHECKPOINTED else self.inner(x)
        return self.head(hidden)


CHECKPOINTED = False
model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(Net()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(5, 6)).sum()  # ddp forward
loss.backward()  # ddp backward
optimizer.register_step_pre_hook(lambda *_: dist.barrier())
optimizer.step()  # step
dist.barrier()  # after step

CHECKPOINTED = True
bare = nn.SyncBatchNorm.convert_sync_batchnorm(Net())
loss = bare(torch.randn(5, 6)).sum()  # checkpointed forward
loss.backward()  # checkpointed backward


class Stumbling(torch.optim.SGD):
    def step(self, closure=None):
        raise ValueError("on purpose")


class Failing(nn.Module):
    def forward(self, x):
        raise ValueError("on purpose")


for fails in (Stumbling(bare.parameters()).step, lambda: nn.Sequential(Failing())(ones)):
    with contextlib.suppress(ValueError):
        fails()
dist.barrier()  # after failures

sharded = nn.Sequential(nn.Linear(6, 3, bias=False), nn.Linear(3, 3, bias=False))
fully_shard(sharded[1])
fully_shard(sharded)
sharded(torch.randn(2, 6)).sum().backward()  # fsdp2
mesh = dist.init_device_mesh("cpu", (world,))
whole = distribute_tensor(torch.ones(6), mesh, [dist.tensor.Shard(0)])
whole.redistribute(mesh, [Replicate()]).to_local()  # dtensor
dist.destroy_process_group()
