"""A program that stock PyTorch runs on CPU: all_reduces, a DDP step, an FSDP2 step with AdamW."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


def make_model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    loss = nn.functional.mse_loss(model(torch.randn(8, 16)), torch.zeros(8, 4))
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def private_mib() -> float:
    """Memory that belongs to this process alone, not shared with the one it was forked from."""
    private_kib = 0
    with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                private_kib += int(line.split()[1])
    return private_kib / 1024


print("first output", flush=True)
dist.init_process_group("gloo")
values = torch.ones(65)
for _ in range(20):
    dist.all_reduce(values)
replica = DistributedDataParallel(make_model())
step(replica, torch.optim.SGD(replica.parameters(), lr=0.1))
sharded = make_model()
for layer in (sharded[0], sharded[2], sharded):
    fully_shard(layer)
step(sharded, torch.optim.AdamW(sharded.parameters()))
print(f"private_mib {private_mib():.2f}", flush=True)
dist.destroy_process_group()
