# kind: B
# ranks: 2
# outcome: ok
# says: rank [01] read
# diagnosis: (?=.*(async|wait))(?=.*(all_reduce|collective))
# why: the Work of an asynchronous all_reduce is dropped and the tensor is read at once; pytorch#27806
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.full((1000,), float(rank + 1))
dist.all_reduce(total, async_op=True)
print("rank", rank, "read a sum of", total[0].item())
dist.barrier()
dist.destroy_process_group()
