# kind: A
# ranks: 4
# outcome: ok
# says: group \[0, 1\] and group \[2, 3\] each match BatchNorm over their own 5 images
# no-diagnosis
# why: SyncBatchNorm in two process groups, made by every rank, each with its own statistics; pytorch#38874, pytorch#48804
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
members = [[0, 1], [2, 3]]
groups = [dist.new_group(ranks) for ranks in members]  # all ranks make all groups
mine = rank // 2

torch.manual_seed(mine)  # the two groups see different images
images = torch.randn(5, 3, 6, 6, dtype=torch.float64) * (1 + mine) + 10 * mine
share = slice(0, 2) if rank % 2 == 0 else slice(2, 5)
torch.manual_seed(9)
plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3)).double()
synced = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3)).double()
synced.load_state_dict(plain.state_dict())
synced = nn.SyncBatchNorm.convert_sync_batchnorm(synced, process_group=groups[mine])

for _ in range(2):
    expected, got = plain(images), synced(images[share])
    torch.testing.assert_close(got, expected[share])
    plain.zero_grad()
    synced.zero_grad()
    expected.square().sum().backward()
    got.square().sum().backward()
for p, q in zip(synced.parameters(), plain.parameters()):
    dist.all_reduce(p.grad, group=groups[mine])
    torch.testing.assert_close(p.grad, q.grad)
for name, buffer in plain.named_buffers():
    torch.testing.assert_close(synced.get_buffer(name), buffer)
means = [torch.empty(4, dtype=torch.float64) for _ in range(4)]
dist.all_gather(means, synced[1].running_mean)
assert torch.equal(means[0], means[1]) and torch.equal(means[2], means[3])
assert not torch.allclose(means[0], means[2])
if rank == 0:
    print("group [0, 1] and group [2, 3] each match BatchNorm over their own 5 images")
dist.destroy_process_group()
