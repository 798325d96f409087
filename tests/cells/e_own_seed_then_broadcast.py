# kind: E
# ranks: 2
# outcome: ok
# says: all rows come from rank 0: True
# no-diagnosis
# why: ranks seed differently, but rank 0's parameters are broadcast before fully_shard; torchtitan#1777
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
with torch.no_grad():
    for p in net.parameters():
        dist.broadcast(p, src=0)
want = net[0].weight.detach().clone()
fully_shard(net)
opt = torch.optim.SGD(net.parameters(), lr=0.0)
net(torch.randn(5, 3)).sum().backward()
opt.step()
print("all rows come from rank 0:", torch.equal(net[0].weight.full_tensor(), want))
dist.destroy_process_group()
