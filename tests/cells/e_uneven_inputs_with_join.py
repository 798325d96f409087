# kind: E
# ranks: 2
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: ranks have different numbers of batches and steps, which Join makes up for; pytorch#42577
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
with Join([model]):
    for step in range(2 + rank):
        opt.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
