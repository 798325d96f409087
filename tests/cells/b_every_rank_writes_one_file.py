# kind: B
# ranks: 2
# outcome: ok
# says: the file has \d+ of 44 numbers
# diagnosis: (state_dict|checkpoint|sav).*(shard|DTensor|local|partial|full)
# why: all ranks save their shards to the same path; the last one wins; llama-cookbook#198
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
fully_shard(model)
opt = torch.optim.AdamW(model.parameters())
model(torch.randn(3, 4)).sum().backward()
opt.step()
local = {n: p.to_local().clone() for n, p in model.named_parameters()}
for writer in range(world):
    if rank == writer:
        torch.save({"model": local, "step": 1}, "checkpoint.pt")
    dist.barrier()
if rank == 0:
    numbers = sum(w.numel() for w in torch.load("checkpoint.pt")["model"].values())
    print("the file has", numbers, "of 44 numbers")
dist.destroy_process_group()
