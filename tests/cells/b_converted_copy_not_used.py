# kind: B
# ranks: 2
# outcome: ok
# says: running means equal: False
# diagnosis: convert_sync_batchnorm.*(return|result|assign|discard|ignored|new)
# why: the layers of a list are converted one by one in a loop that only rebinds the loop variable; pytorch#39646
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
norms = [nn.BatchNorm1d(3), nn.BatchNorm1d(3)]
for norm in norms:
    norm = nn.SyncBatchNorm.convert_sync_batchnorm(norm)
model = DDP(nn.Sequential(norms[0], nn.Linear(3, 3), norms[1]))
torch.manual_seed(rank)
for step in range(2):
    model(torch.randn(6, 3) + rank).square().mean().backward()
mine = model.module[0].running_mean.clone()
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine)
print("running means equal:", torch.equal(*both))
dist.destroy_process_group()
