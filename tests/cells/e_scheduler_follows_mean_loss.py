# kind: E
# ranks: 2
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: the validation loss is averaged over ranks before ReduceLROnPlateau sees it; DALLE-pytorch#268
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.1, patience=0)
torch.manual_seed(3)
x = torch.randn(world, 8, 4)[rank]
for epoch in range(4):
    opt.zero_grad()
    model(x).square().mean().backward()
    opt.step()
    validation = torch.tensor(1.0 - 0.1 * epoch if rank == 0 else 1.0)
    dist.all_reduce(validation)
    plateau.step(validation.item() / world)
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
