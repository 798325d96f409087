"""Training steps of a small transformer under fully_shard; prints how long one takes.

A torchrun program. The benchmark sets the two numbers in the next line.
"""

NUM_STEPS, WIDTH = 8, 512

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

NUM_HEADS, NUM_BLOCKS, BATCH, LENGTH = 8, 6, 8, 64
NUM_WARM_UP = 3

dist.init_process_group("gloo")
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(WIDTH, NUM_HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, NUM_BLOCKS, enable_nested_tensor=False)
for block in model.layers:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
torch.manual_seed(1 + dist.get_rank())
x = torch.randn(BATCH, LENGTH, WIDTH)


def step() -> None:
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(NUM_WARM_UP):
    step()
dist.barrier()
begin = time.perf_counter()
for _ in range(NUM_STEPS):
    step()
dist.barrier()
print(f"step_ms {(time.perf_counter() - begin) / NUM_STEPS * 1e3:.3f}")
dist.destroy_process_group()
