# kind: E
# ranks: 2
# outcome: ok
# says: order repeats: False
# no-diagnosis
# why: set_epoch before each epoch; the training accuracy is then measured over the same sampler; pytorch#31771
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.arange(24.0).view(24, 1))
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=4, sampler=sampler)
model = DDP(nn.Linear(1, 1))
opt = torch.optim.SGD(model.parameters(), lr=1e-4)
orders = []
for epoch in range(3):
    sampler.set_epoch(epoch)
    seen = []
    for (x,) in loader:
        seen += x.flatten().tolist()
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
    orders.append(seen)
with torch.no_grad():
    total = sum(model.module(x).sum() for (x,) in loader)
print("order repeats:", orders[0] == orders[1])
dist.destroy_process_group()
