# kind: E
# ranks: 2
# outcome: ok
# says: head differs between ranks: False
# no-diagnosis
# why: blocks are sharded, the plain head's gradients are averaged by hand before the step; UniRL#7
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
fully_shard(model[0])
opt = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
torch.manual_seed(1 + rank)
for step in range(3):
    opt.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(3, (8,))).backward()
    for p in model[2].parameters():
        dist.all_reduce(p.grad)
        p.grad /= world
    opt.step()
mine = model[2].weight.detach().clone()
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine)
print("head differs between ranks:", not torch.equal(*both))
dist.destroy_process_group()
