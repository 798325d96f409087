# kind: E
# ranks: 2
# outcome: ok
# says: samples seen by both ranks: 0 of 32
# no-diagnosis
# why: all ranks load the same global batches and each trains on its slice; two models in turn over one sampler, one epoch each; llama2.c#522
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.arange(32.0).view(32, 1), torch.randn(32, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
seen = torch.zeros(32)

def train(model, batches, share):
    opt = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in batches:
        x, y = x[share], y[share]
        seen[x.flatten().long()] += 1
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()

train(DDP(nn.Linear(1, 1)), loader, slice(rank, None, world))
both = seen.clone()
dist.all_reduce(both, op=dist.ReduceOp.MIN)
print("samples seen by both ranks:", int(both.sum()), "of 32")
sampler = DistributedSampler(data, shuffle=True)
shared = DataLoader(data, batch_size=4, sampler=sampler)
for _ in range(2):
    train(DDP(nn.Linear(1, 1)), shared, slice(None))
dist.destroy_process_group()
