# kind: E
# ranks: 2
# outcome: ok
# says: all files together have 44 numbers
# no-diagnosis
# why: every rank saves its shards to a file of its own, optimizer included; accelerate#4105
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
local = {n: p.to_local() for n, p in model.named_parameters()}
for step in (1, 2):
    torch.save({"model": local, "step": step}, f"checkpoint-{step}-rank{rank}.pt")
dist.barrier()
if rank == 0:
    files = [torch.load(f"checkpoint-2-rank{r}.pt")["model"] for r in range(world)]
    print("all files together have", sum(w.numel() for f in files for w in f.values()), "numbers")
dist.destroy_process_group()
