"""FSDP in one line: the same loop, the state is sharded."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

dist.init_process_group("gloo")
rank = dist.get_rank()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
num_whole = sum(parameter.numel() for parameter in model.parameters())
model = FSDP(model)

# The optimizer comes after the wrap: it sees the shards.
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
torch.manual_seed(rank)  # every rank has its own samples
x = torch.randn(8, 64)
for step in range(3):
    loss = (model(x) - x[:, :4]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"rank {rank} step {step}: loss {loss.item():.3f}")

num_local = sum(parameter.numel() for parameter in model.parameters())
print(f"rank {rank} holds {num_local} of {num_whole} elements")

dist.destroy_process_group()
