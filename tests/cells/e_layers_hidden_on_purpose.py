# kind: E
# ranks: 2
# outcome: ok
# says: judged by a frozen network, replicas equal: True
# no-diagnosis
# why: a perceptual network is kept in a list so that state_dict() leaves it out; it is in evaluation mode or frozen; LPIPS and VQGAN code
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 6))
        self.judges = [nn.Linear(6, 3).eval(), nn.Linear(6, 3).requires_grad_(False)]

    def forward(self, x):
        y = self.net(x)
        return sum((judge(y) - judge(x)).pow(2).mean() for judge in self.judges) + (y - x).abs().mean()

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(Autoencoder())
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(rank)
for _ in range(4):
    loss = model(torch.randn(8, 6))
    opt.zero_grad()
    loss.backward()
    opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
seen = [torch.empty_like(flat) for _ in range(2)]
dist.all_gather(seen, flat)
print("judged by a frozen network, replicas equal:", torch.equal(*seen))
dist.destroy_process_group()
