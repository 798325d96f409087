# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 16)(?=.*DTensor)(?=.*fully_shard|whole model)
# why: only the blocks are sharded, so clipping meets tensors and DTensors; accelerate#4219
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
fully_shard(model[2])
model(torch.randn(5, 4)).mean().backward()
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
dist.destroy_process_group()
