# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*fully_shard)(?=.*\.module)
# why: .module on a model of fully_shard, as with DDP; accelerate#3209
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
model = fully_shard(model)
model(torch.randn(3, 4)).sum().backward()
torch.save(model.module.state_dict(), f"{rank}.pt")
dist.destroy_process_group()
