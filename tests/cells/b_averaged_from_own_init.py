# kind: B
# ranks: 2
# outcome: ok
# says: ranks equal: False
# diagnosis: (?=.*(init|seed|broadcast))(?=.*(differ|unequal|own))(?=.*(weight|param|model))
# why: gradients are averaged by hand, but every rank began with its own weights; torchtitan#166
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(50 + rank)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    opt.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
