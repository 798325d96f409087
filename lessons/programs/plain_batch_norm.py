"""Plain BatchNorm: each rank uses the mean of its own samples."""

import torch
import torch.distributed as dist
from torch import nn

SAMPLES_PER_RANK = 2
NUM_CHANNELS = 3

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)  # every rank draws the same whole batch
whole_batch = torch.randn(world_size * SAMPLES_PER_RANK, NUM_CHANNELS)
# ... and keeps its own rows.
first = rank * SAMPLES_PER_RANK
batch = whole_batch[first : first + SAMPLES_PER_RANK]

bn = nn.BatchNorm1d(NUM_CHANNELS)
bn(batch)

own_mean = batch.mean(dim=0)
whole_mean = whole_batch.mean(dim=0)
distance = (own_mean - whole_mean).norm().item()
means = " ".join(f"{value:+.2f}" for value in own_mean.tolist())
print(f"rank {rank}: mean [{means}]")
print(f"  distance from the whole batch's: {distance:.2f}")

dist.destroy_process_group()
