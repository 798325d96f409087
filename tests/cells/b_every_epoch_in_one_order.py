# kind: B
# ranks: 2
# outcome: ok
# says: order repeats: True
# diagnosis: set_epoch
# why: DistributedSampler shuffles by its epoch number, which nobody sets; pytorch#31771
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
    seen = []
    for (x,) in loader:
        seen += x.flatten().tolist()
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
    orders.append(seen)
print("order repeats:", orders[0] == orders[1] == orders[2])
dist.destroy_process_group()
