# kind: B
# ranks: 2
# outcome: ok
# says: adapters differ between ranks: True; base differs: False
# diagnosis: (?=.*(ignor|not (reduc|averag)|local|drift|differ))(?=.*(gradient|parameter|weight))
# why: parameters that DDP was told to ignore are still trained, on each rank from its own data; pytorch _ddp_params_and_buffers_to_ignore reports
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 6)
        self.adapter = nn.Linear(6, 6, bias=False)

    def forward(self, x):
        return self.base(x) + self.adapter(x)

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = Adapted()
DDP._set_params_and_buffers_to_ignore_for_model(net, ["adapter.weight"])
model = DDP(net)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(70 + rank)
for _ in range(4):
    opt.zero_grad()
    model(torch.randn(9, 6)).pow(2).mean().backward()
    opt.step()

def differs(t):
    seen = [torch.empty_like(t) for _ in range(2)]
    dist.all_gather(seen, t.detach())
    return not torch.equal(*seen)

print(f"adapters differ between ranks: {differs(net.adapter.weight)}; base differs: {differs(net.base.weight)}")
dist.destroy_process_group()
