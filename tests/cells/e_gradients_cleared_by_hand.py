# kind: E
# ranks: 2
# outcome: ok
# says: three ways to clear gradients, replicas equal: True
# no-diagnosis
# why: no zero_grad() call: gradients are set to None or zeroed by hand, or torch.autograd.grad fills them anew
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)))
free = nn.Linear(4, 1)
opt = torch.optim.SGD([*model.parameters(), *free.parameters()], lr=0.05)
torch.manual_seed(rank + 4)
for step in range(6):
    x = torch.randn(8, 4)
    model(x).pow(2).mean().backward()
    grads = torch.autograd.grad((free(x) - 1).pow(2).mean(), list(free.parameters()))
    for p, g in zip(free.parameters(), grads):
        dist.all_reduce(g)
        p.grad = g / world
    opt.step()
    for p in model.parameters():
        if step % 2:
            p.grad = None
        else:
            p.grad.zero_()
flat = torch.cat([p.detach().flatten() for g in opt.param_groups for p in g["params"]])
seen = [torch.empty_like(flat) for _ in range(2)]
dist.all_gather(seen, flat)
print("three ways to clear gradients, replicas equal:", torch.equal(*seen))
dist.destroy_process_group()
