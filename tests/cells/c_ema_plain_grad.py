# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line \d+)(?=.*DTensor)(?=.*zeros_like)
# why: gradients of a sharded model are set to plain tensors; pytorch#126950
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Linear(4, 8)
fully_shard(model)
for p in model.parameters():
    p.grad = torch.zeros(p.shape)
model(torch.randn(3, 4)).sum().backward()
dist.destroy_process_group()
