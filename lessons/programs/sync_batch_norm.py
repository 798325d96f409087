"""SyncBatchNorm equals BatchNorm over the whole batch, to 1e-12."""

from functools import partial

import torch
import torch.distributed as dist
from torch import nn

SAMPLES_PER_RANK = 2
NUM_CHANNELS = 3

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)  # the same whole batch on every rank
num_samples = world_size * SAMPLES_PER_RANK
whole_batch = torch.randn(num_samples, NUM_CHANNELS).double()
target = torch.randn_like(whole_batch)
mine = slice(rank * SAMPLES_PER_RANK, (rank + 1) * SAMPLES_PER_RANK)

# This rank's part of the batch, through SyncBatchNorm.
batch = whole_batch[mine].clone().requires_grad_()
sync_bn = nn.SyncBatchNorm(NUM_CHANNELS, dtype=torch.float64)
output = sync_bn(batch)
(output * target[mine]).sum().backward()

# The whole batch, through plain BatchNorm in one process.
whole = whole_batch.clone().requires_grad_()
mean = torch.zeros(NUM_CHANNELS).double()
var = torch.ones(NUM_CHANNELS).double()
expected = nn.functional.batch_norm(whole, mean, var, training=True)
(expected * target).sum().backward()

assert_close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)
assert_close(output, expected[mine])
assert_close(batch.grad, whole.grad[mine])
assert_close(sync_bn.running_mean, mean)  # updated in place above
assert_close(sync_bn.running_var, var)
print(f"rank {rank}: output and input gradient agree")
print(f"rank {rank}: running statistics agree")

dist.destroy_process_group()
