# kind: E
# ranks: 2
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: local SGD: ranks step on their own under no_sync and the weights are averaged every fourth step; pytorch#59699
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(8):
    with model.no_sync():
        model(torch.randn(6, 4)).square().mean().backward()
    opt.step()
    opt.zero_grad()
    if step % 4 == 3:
        with torch.no_grad():
            for p in model.parameters():
                dist.all_reduce(p)
                p /= world
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
