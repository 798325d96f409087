# kind: E
# ranks: 3
# outcome: ok
# no-diagnosis
# why: uneven batches under Join are right; pytorch#38174
import torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed.algorithms.join import Join
dist.init_process_group("gloo")
r = dist.get_rank()
torch.manual_seed(0)
m = DDP(nn.Linear(3, 1)); opt = torch.optim.SGD(m.parameters(), lr=.1)
with Join([m]):
    for x in torch.randn(3 + r, 5, 3):
        opt.zero_grad()
        m(x).mean().backward()
        opt.step()
with m.join():
    for x in torch.randn(3 + r, 5, 3):
        opt.zero_grad()
        m(x).mean().backward()
        opt.step()
dist.destroy_process_group()
