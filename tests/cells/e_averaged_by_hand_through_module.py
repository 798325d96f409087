# kind: E
# ranks: 2
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: the loss goes through model.module on purpose and the gradients are averaged by hand; OpenTSLM#49
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(40 + rank)
for step in range(3):
    opt.zero_grad()
    model.module(torch.randn(8, 4)).square().mean().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world
    opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
