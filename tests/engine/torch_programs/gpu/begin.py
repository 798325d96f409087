"""Begins every program of the GPU checks: nccl on this rank's GPU, and a training to compare with.

`told` prints one JSON line on rank 0.
"""

import json
import os

import torch
import torch.distributed as dist
from torch import nn

torch.backends.cudnn.deterministic = True
torch.backends.cudnn.allow_tf32 = False
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
rank = dist.get_rank()


def told(**facts):
    if rank == 0:
        print(json.dumps(facts), flush=True)


def net():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * 6 * 6, 32), nn.Tanh(), nn.Linear(32, 4),
    ).to(device)  # fmt: skip


def batches():
    generator = torch.Generator().manual_seed(2)
    for _ in range(4):
        x = torch.randn(8, 3, 8, 8, generator=generator)
        y = torch.randn(8, 4, generator=generator)
        yield x.to(device), y.to(device)


def train(model, optimizer):
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def plain_losses():
    model = net()
    return train(model, torch.optim.Adam(model.parameters(), lr=1e-2))


def compared(model, optimizer):
    """Train what is to be checked and the plain model; tell how far their losses are apart."""
    dist.all_reduce(torch.ones(1001, device=device))  # with one rank a sharded model moves nothing
    got, want = train(model, optimizer), plain_losses()
    gap = max(abs(a - b) for a, b in zip(got, want, strict=True))
    told(backend=dist.get_backend(), gap=gap, losses=got)
