# kind: B
# ranks: 2
# outcome: ok
# says: saved 130 of 260 numbers
# diagnosis: (state_dict|checkpoint|sav).*(shard|DTensor|local|partial|full)
# why: rank 0 saves model.state_dict() of a fully_shard model: only its own shards reach the file; bergson#380
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 8))
total = sum(p.numel() for p in model.parameters())
for m in (model[0], model[2], model):
    fully_shard(m)
opt = torch.optim.AdamW(model.parameters())
torch.manual_seed(1 + dist.get_rank())
for _ in range(2):
    model(torch.randn(4, 12)).square().mean().backward()
    opt.step()
    opt.zero_grad()
if dist.get_rank() == 0:
    weights = {
        k: v.to_local() if hasattr(v, "to_local") else v for k, v in model.state_dict().items()
    }
    torch.save(weights, "model.pt")
    print("saved", sum(w.numel() for w in torch.load("model.pt").values()), "of", total, "numbers")
dist.barrier()
dist.destroy_process_group()
