"""fully_shard that gathers again for backward, with rows that do not divide by the ranks."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
model = nn.Sequential(nn.Linear(16, 61), nn.ReLU(), nn.Linear(61, 3))
for layer in (model[0], model[2]):
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(8, 16)), torch.zeros(8, 3)).backward()
    optimizer.step()
