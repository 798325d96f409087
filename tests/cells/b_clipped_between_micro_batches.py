# kind: B
# ranks: 2
# outcome: ok
# says: rank [01] scaled its own half by 0\.\d+
# diagnosis: (?=.*clip)(?=.*(no_sync|accumul|local|before .*(reduc|averag)|micro|not yet))
# why: clipping runs after every micro-batch, inside no_sync: each rank scales its own unreduced gradient by another factor; tt-metal#17672
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(2)
net = DDP(nn.Sequential(nn.Linear(5, 10), nn.Tanh(), nn.Linear(10, 2)))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
torch.manual_seed(rank + 1)

def micro_step(scale):
    loss = net(torch.randn(4, 5) * scale).pow(2).mean() / 2
    loss.backward()
    return nn.utils.clip_grad_norm_(net.parameters(), 0.05)

for update in range(3):
    with net.no_sync():
        norm = micro_step(1 + 3 * rank)
    micro_step(1 + 3 * rank)
    opt.step()
    opt.zero_grad()
print(f"rank {rank} scaled its own half by {min(0.05 / norm.item(), 0.999):.3f}")
dist.destroy_process_group()
