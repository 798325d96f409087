"""Two dimensions of ranks: replicas of shards, and shards of a tensor-parallel model."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def make():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))


def train(model):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        model(torch.randn(4, 16)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


dist.init_process_group()
shape = (2, dist.get_world_size() // 2)
mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replica", "shard"))
hybrid = make()
for layer in (hybrid[0], hybrid[2]):
    fully_shard(layer, mesh=mesh)
train(fully_shard(hybrid, mesh=mesh))
train(
    FullyShardedDataParallel(
        make(), sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh
    )
)

mesh = init_device_mesh("cpu", shape[::-1], mesh_dim_names=("data", "tensor"))
plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
parallel = parallelize_module(make(), mesh["tensor"], plan)
train(fully_shard(parallel, mesh=mesh["data"]))
tensor = distribute_tensor(torch.randn(8, 8), mesh["tensor"], [Shard(0)])
moved = tensor.redistribute(placements=[Shard(1)])
whole = tensor.redistribute(placements=[Replicate()]), tensor.full_tensor()
