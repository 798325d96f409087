"""Every kind of collective and point-to-point call, by hand."""

import torch
import torch.distributed as dist

dist.init_process_group(backend="nccl")
rank, world_size = dist.get_rank(), dist.get_world_size()
x = torch.ones(5) * rank
dist.all_reduce(x, op=dist.ReduceOp.AVG)
dist.broadcast(x, 0)
dist.reduce(x, 0)
parts = [torch.empty(5) for _ in range(world_size)]
dist.all_gather(parts, x)
flat = torch.empty(5 * world_size)
dist.all_gather_into_tensor(flat, x)
dist.reduce_scatter_tensor(x, flat)
dist.reduce_scatter(x, parts)
dist.all_to_all_single(torch.empty(world_size * 3), torch.ones(world_size * 3))
dist.all_to_all([torch.empty(2) for _ in parts], [torch.ones(2) for _ in parts])
dist.gather(x, parts if rank == 0 else None, dst=0)
dist.scatter(x, parts if rank == 0 else None, src=0)
work = dist.all_reduce(x, async_op=True)
work.wait()
work.get_future().wait()
pair = dist.new_group([0, 1])
if rank == 0:
    dist.all_reduce(x, group=pair)
    dist.send(x, 1)
    dist.recv(x, 1)
elif rank == 1:
    dist.all_reduce(x, group=pair)
    dist.recv(x, 0)
    dist.send(x, 0)
objects = [{"from": 0} if rank == 0 else None]
dist.broadcast_object_list(objects, src=0)
assert objects == [{"from": 0}]
dist.barrier()
