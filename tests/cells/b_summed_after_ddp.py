# kind: B
# ranks: 2
# outcome: ok
# says: gradient is 2\.00 times the average
# diagnosis: (?=.*(DDP|DistributedDataParallel))(?=.*(gradient|averag))(?=.*(already|again|twice|times))
# why: average_gradients() from a hand-made loop is kept after the model was wrapped in DDP, and does not divide; examples#1146
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for step in range(2):
    opt.zero_grad()
    model(torch.randn(6, 4)).square().mean().backward()
    average = model.module.weight.grad.clone()
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
    opt.step()
print("gradient is %.2f times the average" % (model.module.weight.grad / average).mean())
dist.destroy_process_group()
