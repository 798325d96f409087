# kind: B
# ranks: 2
# outcome: ok
# says: saved moments of \d+ of 55 numbers
# diagnosis: (state_dict|checkpoint|sav).*(shard|DTensor|local|partial|full)
# why: rank 0 saves the FSDP1 optimizer's state_dict, which has only its own shards' moments; fairscale#776
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = FSDP(nn.Linear(10, 5), device_id=torch.device("cpu"))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for step in range(2):
    model(torch.randn(3, 10)).sum().backward()
    opt.step()
    opt.zero_grad()
if rank == 0:
    torch.save({"optimizer": opt.state_dict(), "epoch": 1}, "optimizer.pt")
    moments = torch.load("optimizer.pt")["optimizer"]["state"][0]["exp_avg"]
    print("saved moments of", moments.numel(), "of 55 numbers")
dist.barrier()
dist.destroy_process_group()
