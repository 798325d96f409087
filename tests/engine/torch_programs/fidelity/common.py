"""Begins every fidelity program: how two trainings are compared, and how that is told.

`check` prints one JSON line on rank 0: a name and the largest absolute difference on any rank.
Nothing here stops at a difference, so all ranks stay in step; the test knows the tolerances.
"""

import json
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def whole(value):
    value = value.full_tensor() if isinstance(value, DTensor) else torch.as_tensor(value)
    return value.detach().double()


def difference(pairs):
    worst = 0.0
    for got, want in pairs:
        got, want = whole(got), whole(want)
        if got.shape != want.shape:
            return math.inf
        gap = float((got - want).abs().max()) if got.numel() else 0.0
        worst = max(worst, math.inf if math.isnan(gap) else gap)
    return worst


def check(name, pairs):
    gap = torch.tensor([difference(pairs)], dtype=torch.float64)
    dist.all_reduce(gap, dist.ReduceOp.MAX)
    if rank == 0:
        print(json.dumps({"check": name, "difference": gap.item()}), flush=True)


def refused(name, call, words):
    """0 if every rank raises an error with these words, else 1."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any, to look at it
        told = words in f"{type(error).__name__}: {error}"
        if not told:
            print(f"{name}: {type(error).__name__}: {error}")
    else:
        told = False
    check(name, [(float(not told), 0.0)])


def net(width=6, seed=1, dtype=torch.float64):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width), nn.Tanh(),
        nn.Linear(width, 5),
    ).to(dtype)  # fmt: skip


def batches(steps=3, per_rank=2, width=6, dtype=torch.float64):
    """[steps, world * per_rank, width], the same on every rank."""
    torch.manual_seed(100)
    return torch.randn(steps, world * per_rank, width).to(dtype)


def share(x):
    """This rank's part of a global batch."""
    return x.tensor_split(world)[rank]


def train(model, opt, data, loss_of=lambda out: out.square().mean()):
    for x in data:
        opt.zero_grad()
        loss_of(model(x)).backward()
        opt.step()
    return model


def sgd(model, lr=0.1):
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def states(got, want):
    """Pairs of all parameters and buffers by name; every one of `want` must be in `got`."""
    return [(got[name], value) for name, value in want.items()]
