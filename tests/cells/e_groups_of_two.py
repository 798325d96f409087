# kind: E
# ranks: 4
# outcome: ok
# says: running means equal within the group: True
# no-diagnosis
# why: synchronised statistics within subgroups of two ranks, the model itself on all four; pytorch#22192
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
group, _ = dist.new_subgroups(group_size=2)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
net = nn.SyncBatchNorm.convert_sync_batchnorm(net, process_group=group)
model = DDP(net, broadcast_buffers=False)
torch.manual_seed(rank)
for step in range(2):
    model(torch.randn(6, 3) + rank).square().mean().backward()
mine = net[1].running_mean.clone()
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine, group=group)
print("running means equal within the group:", torch.equal(*both))
dist.destroy_process_group()
