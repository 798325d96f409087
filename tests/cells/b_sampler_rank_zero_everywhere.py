# kind: B
# ranks: 2
# outcome: ok
# says: samples seen: 12 of 24
# diagnosis: (?=.*DistributedSampler)(?=.*rank)(?=.*(same|every|all))
# why: rank=0 left in DistributedSampler from a single-GPU test; every rank takes the first share; Trainer#144
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.arange(24.0).view(24, 1))
sampler = DistributedSampler(data, num_replicas=world, rank=0, shuffle=False)
model = DDP(nn.Linear(1, 1))
opt = torch.optim.SGD(model.parameters(), lr=1e-4)
seen = torch.zeros(24)
for (x,) in DataLoader(data, batch_size=3, sampler=sampler):
    seen[x.flatten().long()] = 1
    opt.zero_grad()
    model(x).mean().backward()
    opt.step()
dist.all_reduce(seen, op=dist.ReduceOp.MAX)
print("samples seen:", int(seen.sum()), "of 24")
dist.destroy_process_group()
