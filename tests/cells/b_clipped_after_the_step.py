# kind: B
# ranks: 2
# outcome: ok
# says: largest update 0\.[1-9]
# diagnosis: (?=.*clip)(?=.*(after|too late|before))(?=.*step)
# why: clip_grad_norm_ runs after optimizer.step(), and zero_grad() follows: nothing is ever clipped; VGRNN#4, graphstorm#1366
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
torch.manual_seed(20 + dist.get_rank())
largest = 0.0
for step in range(3):
    before = [p.detach().clone() for p in model.parameters()]
    loss = (model(torch.randn(7, 9)) - 3.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e-3)
    moved = torch.stack([(p - b).norm() for p, b in zip(model.parameters(), before)]).norm()
    largest = max(largest, min(moved.item(), 0.99))
print(f"largest update {largest:.3f}, asked for at most 0.001")
dist.destroy_process_group()
