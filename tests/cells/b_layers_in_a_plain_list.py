# kind: B
# ranks: 2
# outcome: ok
# says: parameters known to the model: 33 of 186
# diagnosis: (?=.*(list|regist|not in|outside|no optimi|never|optimi[sz]er))(?=.*(parameter|layer|module|weight))
# why: blocks kept in a Python list are not registered: neither DDP nor the optimizer sees them; detectron2 and forum reports
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Tower(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.stem = nn.Linear(2, 8)
        self.blocks = [nn.Linear(8, 8) for _ in range(depth)]
        self.blocks.append(nn.Linear(8, 1))
        self.out = nn.Linear(1, 1, bias=False)
        self.shift = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        x = self.stem(x) + self.shift
        for block in self.blocks[:-1]:
            x = x + block(x).relu()
        return self.out(self.blocks[-1](x))

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(Tower())
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(5 + dist.get_rank())
for _ in range(3):
    x = torch.randn(6, 2)
    loss = (model(x) - x.prod(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
known = sum(p.numel() for p in model.parameters())
hidden = sum(p.numel() for b in model.module.blocks for p in b.parameters())
print("parameters known to the model:", known, "of", known + hidden)
dist.destroy_process_group()
