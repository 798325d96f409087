"""A SyncBatchNorm layer sends 2C + 1 values, then 2C values."""

import torch
import torch.distributed as dist
from torch import nn

BYTES_PER_VALUE = torch.float32.itemsize

dist.init_process_group("gloo")
rank = dist.get_rank()

torch.manual_seed(rank)
model = nn.Sequential(
    nn.Conv2d(3, 16, kernel_size=3),
    nn.SyncBatchNorm(16),
    nn.ReLU(),
    nn.Conv2d(16, 64, kernel_size=3),
    nn.SyncBatchNorm(64),
)

if rank == 0:
    for name, layer in model.named_modules():
        if isinstance(layer, nn.SyncBatchNorm):
            num_channels = layer.num_features
            forward_bytes = (2 * num_channels + 1) * BYTES_PER_VALUE
            backward_bytes = 2 * num_channels * BYTES_PER_VALUE
            print(f"predicted for layer {name}, {num_channels} channels:")
            print(f"  forward:  all_gather {forward_bytes} bytes")
            print(f"  backward: all_reduce {backward_bytes} bytes")

images = torch.randn(2, 3, 8, 8)
model(images).square().mean().backward()

dist.destroy_process_group()
