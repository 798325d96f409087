# kind: B
# ranks: 2
# outcome: ok
# says: rows that moved: 2 of 4
# diagnosis: (?=.*step)(?=.*(every|all|only).*rank)
# why: optimizer.step() on rank 0 only: the other rank's shards stay what they were; bergson#380
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
fully_shard(model)
opt = torch.optim.Adam(model.parameters(), lr=0.1)
before = model[0].weight.full_tensor().clone()
torch.manual_seed(rank)
for step in range(3):
    model(torch.randn(6, 5)).square().mean().backward()
    if rank == 0:
        opt.step()
    opt.zero_grad()
moved = (model[0].weight.full_tensor() != before).any(1)
print("rows that moved:", int(moved.sum()), "of 4")
dist.destroy_process_group()
