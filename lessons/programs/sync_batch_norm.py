"""SyncBatchNorm on several ranks equals BatchNorm over the whole batch, checked to 1e-12."""

from functools import partial

import torch
import torch.distributed as dist
from torch import nn

SAMPLES_PER_RANK = 2
NUM_CHANNELS = 3

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)  # every rank draws the same global batch and the same target
global_batch = torch.randn(world_size * SAMPLES_PER_RANK, NUM_CHANNELS, dtype=torch.float64)
target = torch.randn_like(global_batch)
mine = slice(rank * SAMPLES_PER_RANK, (rank + 1) * SAMPLES_PER_RANK)

# This rank's part of the batch, through SyncBatchNorm.
batch = global_batch[mine].clone().requires_grad_()
sync_bn = nn.SyncBatchNorm(NUM_CHANNELS, dtype=torch.float64)
output = sync_bn(batch)
(output * target[mine]).sum().backward()

# The whole batch, through plain batch normalization in one process.
whole = global_batch.clone().requires_grad_()
mean, var = torch.zeros(NUM_CHANNELS).double(), torch.ones(NUM_CHANNELS).double()
expected = nn.functional.batch_norm(whole, mean, var, training=True)
(expected * target).sum().backward()

assert_close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)
assert_close(output, expected[mine])
assert_close(batch.grad, whole.grad[mine])
assert_close(sync_bn.running_mean, mean)  # batch_norm has updated both in place
assert_close(sync_bn.running_var, var)
print(f"rank {rank}: output, input gradient and running statistics all agree")

dist.destroy_process_group()
