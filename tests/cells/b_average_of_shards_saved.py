# kind: B
# ranks: 2
# outcome: ok
# says: the averaged file holds \d+ of 172 numbers
# diagnosis: (?=.*(sav|checkpoint|state_dict|file))(?=.*(shard|DTensor|local|part))
# why: an EMA kept on local shards is fine, but rank 0 saves only its own; miles-credit#414
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

class EMA:
    def __init__(self, module, decay):
        self.decay = decay
        self.shadow = {n: p.to_local().detach().clone() for n, p in module.named_parameters()}

    @torch.no_grad()
    def update(self, module):
        for n, p in module.named_parameters():
            self.shadow[n].lerp_(p.to_local(), 1 - self.decay)

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 4), nn.Linear(4, 3), nn.Linear(3, 1, bias=False))
total = sum(p.numel() for p in net.parameters())
fully_shard(net)
ema = EMA(net, 0.9)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
torch.manual_seed(1 + dist.get_rank())
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(6, 10)).pow(2).mean().backward()
    opt.step()
    ema.update(net)
if dist.get_rank() == 0:
    torch.save(ema.shadow, "ema.pt")
    print("the averaged file holds", sum(t.numel() for t in torch.load("ema.pt").values()), "of", total, "numbers")
dist.barrier()
dist.destroy_process_group()
