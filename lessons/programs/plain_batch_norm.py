"""Plain BatchNorm on several ranks: each rank normalizes with the mean of its own samples."""

import torch
import torch.distributed as dist
from torch import nn

SAMPLES_PER_RANK = 2
NUM_CHANNELS = 3

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)  # every rank draws the same global batch ...
global_batch = torch.randn(world_size * SAMPLES_PER_RANK, NUM_CHANNELS)
batch = global_batch[rank * SAMPLES_PER_RANK :][:SAMPLES_PER_RANK]  # ... and keeps its own rows

bn = nn.BatchNorm1d(NUM_CHANNELS)
bn(batch)

local_mean = batch.mean(dim=0)
global_mean = global_batch.mean(dim=0)
distance = (local_mean - global_mean).norm().item()
means = ", ".join(f"{value:+.2f}" for value in local_mean.tolist())
print(f"rank {rank}: mean [{means}], distance from the global mean {distance:.2f}")

dist.destroy_process_group()
