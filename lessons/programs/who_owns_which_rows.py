"""fully_shard leaves each rank some rows of every parameter."""

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
num_whole = sum(parameter.numel() for parameter in model.parameters())

fully_shard(model, mesh=init_device_mesh("cpu", (world_size,)))

num_local = 0
for name, parameter in model.named_parameters():
    shard = parameter.to_local()
    num_local += shard.numel()
    num_rows = parameter.shape[0]
    rows_per_rank = math.ceil(num_rows / world_size)
    first = min(rank * rows_per_rank, num_rows)
    last = first + shard.shape[0]
    print(f"rank {rank} {name}: rows {first}:{last} of {num_rows}")
print(f"rank {rank} owns {num_local} of {num_whole} elements")

dist.destroy_process_group()
