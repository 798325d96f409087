# kind: B
# ranks: 2
# outcome: ok
# says: ranks equal: False
# diagnosis: (?=.*step)(?=.*(every|all|only).*rank)
# why: optimizer.step() inside of `if rank == 0`, as one does with saving and printing; the other replicas never move; examples#483
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    model(torch.randn(6, 4)).square().mean().backward()
    if rank == 0:
        opt.step()
        print("step", step)
    opt.zero_grad()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
