# kind: B
# ranks: 2
# outcome: ok
# says: ranks equal: False
# diagnosis: (?=.*(frozen|unfr|requires_grad))(?=.*(gradient|reduc|averag))(?=.*(DDP|DistributedDataParallel))
# why: the backbone is frozen when DDP is made and unfrozen for the second epoch; Lightning#20340
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.relu(self.backbone(x)))

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = Net()
net.backbone.requires_grad_(False)
model = DDP(net)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(5 + rank)
for epoch in range(2):
    if epoch == 1:
        net.backbone.requires_grad_(True)
    for step in range(2):
        x, y = torch.randn(6, 5), torch.randint(3, (6,))
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
