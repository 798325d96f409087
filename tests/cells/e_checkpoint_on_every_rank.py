# kind: E
# ranks: 3
# outcome: ok
# says: ranks equal: True
# no-diagnosis
# why: rank 0 writes a checkpoint, all ranks load it after the barrier into the wrapped model; pytorch-lightning#1335
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(3, 2))
if rank == 0:
    torch.save({"weight": torch.ones(2, 3), "bias": torch.zeros(2)}, "start.pt")
dist.barrier()
model.module.load_state_dict(torch.load("start.pt"))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(2):
    opt.zero_grad()
    model(torch.randn(4, 3)).sum().backward()
    opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
