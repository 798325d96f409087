# kind: B
# ranks: 2
# outcome: ok
# says: ranks equal: False
# diagnosis: (?=.*(after|before))(?=.*(DDP|DistributedDataParallel|wrap))(?=.*(gradient|reduc|averag))
# why: a new Parameter is assigned after the DDP constructor: its reducer hooks the old one; pytorch#12603
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), find_unused_parameters=True)
model.module[2].weight = nn.Parameter(torch.full((2, 8), 0.1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(1 + rank)
for step in range(3):
    opt.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
