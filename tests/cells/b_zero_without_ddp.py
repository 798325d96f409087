# kind: B
# ranks: 2
# outcome: ok
# says: equals the averaged run: False
# diagnosis: (?=.*(ZeroRedundancy|ZeRO))(?=.*(gradient|averag))(?=.*(DDP|DistributedDataParallel))
# why: ZeroRedundancyOptimizer shares the step, not the gradients: every parameter follows the batch of the rank that owns it; tutorials#1375
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
data = torch.randn(3, world, 6, 4)
whole, model = net(), net()
reference = torch.optim.SGD(whole.parameters(), lr=0.1)
opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
for batch in data:
    for m, o, x in ((whole, reference, batch.flatten(0, 1)), (model, opt, batch[rank])):
        o.zero_grad()
        m(x).square().mean().backward()
        o.step()
same = all(torch.allclose(p, q, atol=1e-5) for p, q in zip(model.parameters(), whole.parameters()))
print("equals the averaged run:", same)
dist.destroy_process_group()
