"""fully_shard that keeps what it gathered, in mixed precision, with clipped gradients."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(33)
        self.up, self.down = nn.Linear(33, 65), nn.Linear(65, 33)

    def forward(self, x):
        return x + checkpoint(self.feed, x, use_reentrant=False)

    def feed(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


dist.init_process_group()
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
model = nn.Sequential(*[Block() for _ in range(3)])
for block in model:
    fully_shard(block, mesh=mesh, reshard_after_forward=False, mp_policy=policy)
fully_shard(model, mesh=mesh, reshard_after_forward=False)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(5, 33)).float().square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
