"""DDP in its usual form, and with the options that change what it sends."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(8, 16)), torch.zeros(8, 4)).backward()
    optimizer.step()

torch.manual_seed(1)
layers = [nn.Linear(64, 64) for _ in range(6)]
other = DistributedDataParallel(
    nn.Sequential(*layers),
    bucket_cap_mb=0.03,
    gradient_as_bucket_view=True,
    find_unused_parameters=True,
)
optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    with other.no_sync():
        other(torch.randn(4, 64)).sum().backward()
    other(torch.randn(4, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
