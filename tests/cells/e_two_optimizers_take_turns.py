# kind: E
# ranks: 2
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: generator and discriminator step in turn, each optimizer leaves the other's parameters alone; pytorch#22049
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
gen, dis = DDP(nn.Linear(3, 5)), DDP(nn.Linear(5, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=0.01)
opt_d = torch.optim.Adam(dis.parameters(), lr=0.01)
torch.manual_seed(100 + rank)
for step in range(4):
    opt_d.zero_grad()
    fake = gen(torch.randn(6, 3)).detach()
    (dis(fake).mean() - dis(torch.randn(6, 5)).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    (-dis.module(gen(torch.randn(6, 3)))).mean().backward()
    opt_g.step()
model = nn.ModuleList([gen, dis])
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
