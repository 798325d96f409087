# kind: B
# ranks: 2
# outcome: ok
# says: running means equal: False
# diagnosis: (?=.*(SyncBatchNorm|SyncBN))(?=.*group)
# why: convert_sync_batchnorm gets a subgroup of size one, so nothing is synchronised; pytorch#22192
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
group, _ = dist.new_subgroups(group_size=1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
net = nn.SyncBatchNorm.convert_sync_batchnorm(net, process_group=group)
model = DDP(net, broadcast_buffers=False)
torch.manual_seed(rank)
for step in range(2):
    model(torch.randn(6, 3) + rank).square().mean().backward()
mine = net[1].running_mean.clone()
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine)
print("running means equal:", torch.equal(*both))
dist.destroy_process_group()
