"""What a rank really holds after a step: DDP with Adam, ZeroRedundancyOptimizer, FSDP."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel as DDP


def build() -> nn.Sequential:
    """Eight equal layers, the same on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(64, 64) for _ in range(8)))


def held_bytes(tensors: Iterable[Tensor | None]) -> int:
    """Bytes that this rank holds of the given tensors; a sharded tensor counts its shard."""
    present = [tensor for tensor in tensors if tensor is not None]
    local = [tensor.to_local() if isinstance(tensor, DTensor) else tensor for tensor in present]
    return sum(tensor.numel() * tensor.element_size() for tensor in local)


def step_and_report(name: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train one step, then print what rank 0 holds."""
    model(torch.randn(4, 64)).square().mean().backward()
    optimizer.step()
    inner = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
    parameters = list(model.parameters())
    moments = (value for state in inner.state.values() for value in state.values())
    held = (
        held_bytes(parameters),
        held_bytes(parameter.grad for parameter in parameters),
        held_bytes(moments),
    )
    if dist.get_rank() == 0:
        print(f"{name:24}" + "".join(f"{count:12,}" for count in held))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(f"{'bytes on rank 0':24}{'parameters':>12}{'gradients':>12}{'optimizer':>12}")

ddp = DDP(build())
step_and_report("DDP + Adam", ddp, torch.optim.Adam(ddp.parameters()))

ddp = DDP(build())
zero = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.Adam)
step_and_report("DDP + ZeRO stage 1", ddp, zero)

sharded = build()
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
for layer in sharded:
    fully_shard(layer, mesh=mesh)
fully_shard(sharded, mesh=mesh)
step_and_report("FSDP (ZeRO stage 3)", sharded, torch.optim.Adam(sharded.parameters()))

dist.destroy_process_group()
