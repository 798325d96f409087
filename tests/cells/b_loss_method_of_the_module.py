# kind: B
# ranks: 2
# outcome: ok
# says: ranks equal: False
# diagnosis: (?=.*(\.module\b|bypass|inner module|unwrapped))(?=.*(gradient|backward|averag|reduc))
# why: training calls a method of the unwrapped model that computes the loss; OpenTSLM#49
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.body(x)))

    def compute_loss(self, x, y):
        return nn.functional.mse_loss(self(x), y)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(Regressor())
opt = torch.optim.AdamW(model.parameters(), lr=0.01)
torch.manual_seed(40 + rank)
for step in range(3):
    loss = model.module.compute_loss(torch.randn(8, 4), torch.randn(8, 1))
    opt.zero_grad()
    loss.backward()
    opt.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
copies = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(copies, flat)
print("ranks equal:", all(torch.equal(c, copies[0]) for c in copies))
dist.destroy_process_group()
