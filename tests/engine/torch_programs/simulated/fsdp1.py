"""FullyShardedDataParallel in three of its strategies."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

dist.init_process_group("gloo")
for strategy in (
    ShardingStrategy.FULL_SHARD,
    ShardingStrategy.SHARD_GRAD_OP,
    ShardingStrategy.NO_SHARD,
):
    model = FullyShardedDataParallel(
        nn.Sequential(nn.Linear(17, 63), nn.ReLU(), nn.Linear(63, 5)),
        auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
        sharding_strategy=strategy,
    )
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(8, 17)), torch.zeros(8, 5)).backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
