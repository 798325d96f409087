# kind: E
# ranks: 3
# outcome: ok
# says: counts \[ 6\. 21\.\], best 2, mean loss \d
# no-diagnosis
# why: metrics reduced in helpers, through NumPy's memory and views, by MAX twice, as a barrier; the loss itself reduced to be shown
import numpy as np
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def mean(value):
    t = torch.tensor(float(value))
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()

def summed(t):
    dist.all_reduce(t)
    return t

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(4):
    loss = model(torch.randn(6, 4)).pow(2).mean()
    dist.all_reduce(loss.detach().clone() * 0)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    seen = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    shown = mean(loss.item())
    dist.all_reduce(torch.ones(1))
counts = np.array([1.0 + rank, 7.0])
dist.all_reduce(torch.from_numpy(counts))
buffer = torch.zeros(4)
buffer[1] = 2.0 + rank
dist.all_reduce(buffer[1:2])
dist.all_reduce(buffer.view(2, 2)[1])
total = summed(torch.tensor(3.0 + rank)).item()
best = torch.tensor(rank)
for _ in range(2):
    dist.all_reduce(best, op=dist.ReduceOp.MAX)
assert total == 12 and buffer[1] == 9
print(f"counts {counts}, best {best.item()}, mean loss {shown:.3f}")
dist.destroy_process_group()
