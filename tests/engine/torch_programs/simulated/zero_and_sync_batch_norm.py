"""SyncBatchNorm inside DDP, with the optimizer's state sharded."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
net = nn.Sequential(
    nn.Conv2d(3, 8, 3),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(288, 4),
)
model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net))
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 3, 8, 8)), torch.arange(8) % 4).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    model(torch.randn(2, 3, 8, 8))
