"""What a rank holds after a step: DDP, ZeRO stage 1, FSDP."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim import Adam, Optimizer


def build() -> nn.Sequential:
    """Eight equal layers, the same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(64, 64) for _ in range(8)))


def held_bytes(tensors: Iterable[Tensor | None]) -> int:
    """Bytes held here; a sharded tensor counts its shard."""
    total = 0
    for tensor in tensors:
        if isinstance(tensor, DTensor):
            tensor = tensor.to_local()
        if tensor is not None:
            total += tensor.nbytes
    return total


def step_and_report(name: str, model: nn.Module, optimizer: Optimizer) -> None:
    """Train one step, then print what rank 0 holds."""
    model(torch.randn(4, 64)).square().mean().backward()
    optimizer.step()
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer = optimizer.optim  # the one that it shards
    states = optimizer.state.values()
    parameters = list(model.parameters())
    held = (
        held_bytes(parameters),
        held_bytes(p.grad for p in parameters),
        held_bytes(t for state in states for t in state.values()),
    )
    if dist.get_rank() == 0:
        print(f"{name:15}" + "".join(f"{count:11,}" for count in held))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    titles = ("parameters", "gradients", "optimizer")
    print("bytes on rank 0" + "".join(f"{title:>11}" for title in titles))

model = DDP(build())
step_and_report("DDP + Adam", model, Adam(model.parameters()))

model = DDP(build())
zero = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=Adam)
step_and_report("ZeRO stage 1", model, zero)

model = build()
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
step_and_report("FSDP (stage 3)", model, Adam(model.parameters()))

dist.destroy_process_group()
