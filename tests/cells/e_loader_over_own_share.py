# kind: E
# ranks: 2
# outcome: ok
# says: samples seen by both ranks: 0 of 32
# no-diagnosis
# why: no sampler needed: each rank's dataset is its own share; validation is the whole set on every rank; llama2.c#522
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x_all, y_all = torch.arange(32.0).view(32, 1), torch.randn(32, 1)
mine = TensorDataset(x_all[rank::world], y_all[rank::world])
loader = DataLoader(mine, batch_size=8, shuffle=True)
validation = DataLoader(TensorDataset(x_all, y_all), batch_size=8)
model = DDP(nn.Linear(1, 1))
opt = torch.optim.SGD(model.parameters(), lr=1e-4)
seen = torch.zeros(32)
for epoch in range(2):
    for x, y in loader:
        seen[x.flatten().long()] = 1
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
    with torch.no_grad():
        error = sum(nn.functional.mse_loss(model(x), y) for x, y in validation)
dist.all_reduce(seen, op=dist.ReduceOp.MIN)
print("samples seen by both ranks:", int(seen.sum()), "of 32")
dist.destroy_process_group()
