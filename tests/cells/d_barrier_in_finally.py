# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*finally)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*exception)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)
# why: a rank that raised waits in the barrier of its finally block, and its exception is never seen; pytorch#77562
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 3))
data = [torch.randn(5, 4) for _ in range(3)]
if rank == 1:
    data[1] = torch.randn(5, 3)
try:
    for x in data:
        model(x).sum().backward()
finally:
    dist.barrier()
    print("cleaned up")
dist.destroy_process_group()
