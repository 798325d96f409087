# kind: E
# ranks: 2
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: LBFGS evaluates a closure inside of step() and gradients are cleared after it; then a GradScaler with clipping takes over; pytorch#22049
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
torch.manual_seed(rank)
x = torch.randn(16, 4)
lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

def closure():
    lbfgs.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    mean = loss.detach().clone()
    dist.all_reduce(mean)                                # ranks must take the same decisions
    return mean / world

for step in range(3):
    lbfgs.step(closure)
    lbfgs.zero_grad()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for step in range(3):
    sgd.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x).float().square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(sgd)
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    scaler.step(sgd)
    scaler.update()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
