# kind: E
# ranks: 2
# outcome: ok
# no-diagnosis
# why: ranks take different branches under find_unused_parameters=True; pytorch#43259
import torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x, first):
        return self.a(x) if first else self.b(x)
dist.init_process_group("gloo")
r = dist.get_rank()
torch.manual_seed(0)
m = DDP(Net(), find_unused_parameters=True); opt = torch.optim.SGD(m.parameters(), lr=.1)
for s in range(3):
    opt.zero_grad()
    m(torch.randn(2, 4), (r + s) % 2 == 0).sum().backward()
    opt.step()
dist.destroy_process_group()
