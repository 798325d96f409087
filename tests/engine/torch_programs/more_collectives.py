"""Every further way to communicate, on 4 ranks. `# name` at a line's end: a test finds it by that.

collectives.py has the plain calls; here are coalesced, object, functional and wrapped ones.
"""

import functools
import threading

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.distributed.checkpoint as dcp
import torch.distributed.nn.functional as dnn
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.join import Join
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817
from torch.utils._python_dispatch import TorchDispatchMode

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world, (rank - 1) % world
ones = torch.ones(4)

# ------------------------------------------------------------------ point to point
ops = [dist.P2POp(dist.isend, torch.ones(2), right), dist.P2POp(dist.irecv, torch.empty(2), left)]
for work in dist.batch_isend_irecv(ops):  # batch
    work.wait()
if rank == 0:
    dist.send_object_list(["text"], dst=1)  # send object
elif rank == 1:
    dist.recv_object_list([None], src=0)  # recv object
sent = dist.isend(ones, right)  # isend
dist.irecv(torch.empty(4), left).wait()  # irecv
sent.wait()

# ------------------------------------------------------------------ lists, coalesced, objects
dist.all_to_all([torch.empty(2) for _ in range(world)], [torch.ones(2)] * world)  # all_to_all list
threes = [[torch.empty(3)] for _ in range(world)]
dist.all_gather_coalesced(threes, [torch.ones(3)])  # gather coalesced
dist.all_reduce_coalesced([torch.ones(2), torch.ones(3)])  # reduce coalesced
dist.broadcast_object_list(["text"], src=2)  # broadcast object
dist.gather_object("text", [None] * world if rank == 1 else None, dst=1)  # gather object
dist.scatter_object_list([None], ["text"] * world if rank == 0 else None, src=0)  # scatter object
dist.all_reduce(torch.ones(2, dtype=torch.complex64))  # complex
dist.all_reduce(torch.ones(2), op=dist.ReduceOp.MAX, async_op=True).wait()  # max

# ------------------------------------------------------------------ functional and autograd
fc.all_reduce(ones, "sum", dist.group.WORLD).add(1)  # functional all_reduce
fc.all_gather_single(ones, 0, dist.group.WORLD).add(1)  # functional all_gather
fc.all_to_all_single(ones, None, None, dist.group.WORLD).add(1)  # functional all_to_all
fc.broadcast(ones, 0, dist.group.WORLD).add(1)  # functional broadcast
x = torch.ones(4, requires_grad=True)
y = dnn.all_reduce(x)  # autograd forward
y.sum().backward()  # autograd backward
torch.compile(lambda t: fc.all_reduce(t, "sum", dist.group.WORLD) + 1, backend="eager")(ones)  # fx

# ------------------------------------------------------------------ groups
halves, _ = dist.new_subgroups(group_size=2)
dist.all_reduce(ones, group=halves)  # subgroup
mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
dist.all_reduce(ones, group=mesh.get_group("shard"))  # mesh


class Learners(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))  # mode


with Learners():
    dist.all_reduce(ones)
thread = threading.Thread(target=lambda: dist.all_reduce(ones))  # thread
thread.start()
thread.join()


# ------------------------------------------------------------------ DDP, Join, hooks, ZeRO
def block():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))


ddp = DDP(block(), broadcast_buffers=False, find_unused_parameters=True)
with ddp.no_sync():
    ddp(torch.ones(2, 4)).sum().backward()  # no_sync
ddp(torch.ones(2, 4)).sum().backward()  # ddp unused

hooked = DDP(block(), broadcast_buffers=False)
hooked.register_comm_hook(None, default_hooks.fp16_compress_hook)
hooked(torch.ones(2, 4)).sum().backward()  # hooked

uneven = DDP(block(), broadcast_buffers=False)
with Join([uneven]):
    for _ in range(2 if rank == 0 else 1):
        uneven(torch.ones(2, 4)).sum().backward()  # join

zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.1)
zero.step()  # zero
zero.consolidate_state_dict(to=1)  # consolidate

# ------------------------------------------------------------------ FSDP
policy = ModuleWrapPolicy({nn.Linear})
flat = FSDP(block(), auto_wrap_policy=policy, device_id=torch.device("cpu"))
loss = flat(torch.ones(2, 4)).sum()  # fsdp1 forward
loss.backward()  # fsdp1 backward
flat.clip_grad_norm_(1.0)  # fsdp1 clip
flat.state_dict()  # fsdp1 state

layered = block()
for layer in layered:
    fully_shard(layer, mesh=mesh)
fully_shard(layered, mesh=mesh)
loss = layered(torch.ones(2, 4)).sum()  # hsdp forward
loss.backward()  # hsdp backward
norm = nn.utils.clip_grad_norm_(layered.parameters(), 1.0)
norm.full_tensor()  # hsdp norm
layered[0].weight.full_tensor()  # full_tensor
dcp.save({"model": layered.state_dict()}, checkpoint_id="saved")  # checkpoint

# ------------------------------------------------------------------ DTensor, tensor parallel
line = dist.init_device_mesh("cpu", (world,))
whole = distribute_tensor(torch.ones(8, 4), line, [Shard(0)])
whole.redistribute(line, [Shard(1)]).to_local().add(1)  # redistribute
whole.sum().full_tensor()  # dtensor sum
plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
parallel = parallelize_module(block(), line, plan)
parallel(torch.ones(2, 4)).sum().backward()  # tensor parallel
functools.partial(dist.barrier)()  # last
