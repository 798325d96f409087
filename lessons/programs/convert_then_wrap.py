"""Convert first, wrap second: SyncBatchNorm inside DDP."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
local_rank = int(os.environ["LOCAL_RANK"])

torch.manual_seed(0)
layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(8, 1))
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
model = DDP(model, device_ids=[local_rank])

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)  # every rank has its own samples
x = torch.randn(2, 4)
for step in range(2):
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"rank {rank} step {step}: loss {loss.item():.3f}")

# Equal copies have equal sums: compare the ranks.
total = sum(parameter.double().sum().item() for parameter in model.parameters())
print(f"rank {rank}: parameters sum to {total:.6f}")

dist.destroy_process_group()
