# kind: E
# ranks: 2
# outcome: ok
# says: saved 44 of 44 numbers
# no-diagnosis
# why: all ranks gather the full state dict, rank 0 saves it; bergson#380
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
fully_shard(model)
opt = torch.optim.AdamW(model.parameters())
model(torch.randn(3, 4)).sum().backward()
opt.step()
full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if rank == 0:
    torch.save(full, "full.pt")
    print("saved", sum(w.numel() for w in torch.load("full.pt").values()), "of 44 numbers")
dist.barrier()
dist.destroy_process_group()
