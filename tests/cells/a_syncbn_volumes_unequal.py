# kind: A
# ranks: 3
# outcome: ok
# says: volumes: output, input gradient, weights and running statistics all match
# why: 1, 4 and 2 volumes per rank (3-d data): SyncBatchNorm equals BatchNorm3d over all 7, forward and backward; pytorch#36382, pytorch#22192
import copy
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
per_rank = [1, 4, 2]
start = sum(per_rank[:rank])
mine = slice(start, start + per_rank[rank])

torch.manual_seed(7)
volumes = torch.randn(sum(per_rank), 6, 2, 3, 4, dtype=torch.float64) * 2 - 5
upstream = torch.randn_like(volumes)
reference = nn.BatchNorm3d(6, dtype=torch.float64)
nn.init.uniform_(reference.weight)
nn.init.normal_(reference.bias)
synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(reference))
assert type(synced) is nn.SyncBatchNorm

for step in range(2):
    whole = (volumes + step).requires_grad_()
    part = (volumes + step)[mine].requires_grad_()
    y_ref, y = reference(whole), synced(part)
    reference.zero_grad()
    synced.zero_grad()
    y_ref.backward(upstream)
    y.backward(upstream[mine])
    for p in synced.parameters():
        dist.all_reduce(p.grad)  # each rank holds its share of the sum
    torch.testing.assert_close(y, y_ref[mine])
    torch.testing.assert_close(part.grad, whole.grad[mine])
    torch.testing.assert_close(synced.weight.grad, reference.weight.grad)
    torch.testing.assert_close(synced.bias.grad, reference.bias.grad)
    torch.testing.assert_close(synced.running_mean, reference.running_mean)
    torch.testing.assert_close(synced.running_var, reference.running_var)
    assert synced.num_batches_tracked == reference.num_batches_tracked == step + 1
print("volumes: output, input gradient, weights and running statistics all match")
dist.destroy_process_group()
