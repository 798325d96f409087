# kind: B
# ranks: 2
# outcome: ok
# says: samples seen by both ranks: 32 of 32
# diagnosis: (?=.*(DistributedSampler|sampler))(?=.*(same|split|repeat|duplicat|every rank))
# why: a plain shuffling DataLoader under DDP: every rank goes through all of the data, each in its own order; SimSiam#16, voxceleb_trainer#98
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
data = TensorDataset(torch.arange(32.0).view(32, 1), torch.randn(32, 1))
torch.manual_seed(rank)
loader = DataLoader(data, batch_size=8, shuffle=True)
model = DDP(nn.Linear(1, 1))
opt = torch.optim.SGD(model.parameters(), lr=1e-4)
seen = torch.zeros(32)
for x, y in loader:
    seen[x.flatten().long()] += 1
    opt.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    opt.step()
dist.all_reduce(seen, op=dist.ReduceOp.MIN)
print("samples seen by both ranks:", int(seen.sum()), "of 32")
dist.destroy_process_group()
