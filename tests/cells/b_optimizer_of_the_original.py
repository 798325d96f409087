# kind: B
# ranks: 2
# outcome: ok
# says: loss 0: ([0-9.]+) loss 3: \1
# diagnosis: (?=.*optimi[sz]er)(?=.*(copy|other|replaced))(?=.*(gradient|param))
# why: DDP wraps a deep copy while the optimizer holds the original's parameters; skorch#317, vision#1124
import copy
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
model = DDP(copy.deepcopy(net))
torch.manual_seed(10 + rank)
x, y = torch.randn(16, 6), torch.randn(16, 1)
losses = []
for step in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss 0: {losses[0]:.6f} loss 3: {losses[3]:.6f}")
dist.destroy_process_group()
