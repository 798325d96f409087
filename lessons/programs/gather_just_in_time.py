"""Each block is a unit of its own: gathered in forward, and again in backward."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

NUM_BLOCKS = 3
WIDTH = 64


def build_block() -> nn.Sequential:
    """One layer with its activation."""
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
blocks = [build_block() for _ in range(NUM_BLOCKS)]
block_bytes = sum(p.nbytes for p in blocks[0].parameters())

# Wrap every block first, the model as a whole last.
model = FSDP(nn.Sequential(*(FSDP(block) for block in blocks)))

if rank == 0:
    print("look for, on each rank:")
    print(f"  forward:  {NUM_BLOCKS} all_gather")
    print(f"  backward: {NUM_BLOCKS} all_gather again")
    print(f"            {NUM_BLOCKS} reduce_scatter")
    print(f"one block: {block_bytes} bytes when whole,")
    print(f"           {block_bytes // world_size} bytes as a shard")

torch.manual_seed(rank)  # every rank has its own samples
x = torch.randn(8, WIDTH)
model(x).square().mean().backward()

dist.destroy_process_group()
