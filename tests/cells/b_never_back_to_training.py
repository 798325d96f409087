# kind: B
# ranks: 2
# outcome: ok
# says: batches counted: 2 of 4
# diagnosis: (?=.*eval)(?=.*train\(\))
# why: validation calls model.eval() and nothing calls model.train() again: SyncBatchNorm stops synchronising; joeynmt#184, ncsn#2
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(net))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)

def validate():
    model.eval()
    with torch.no_grad():
        return model(torch.randn(8, 3)).mean()

for epoch in range(2):
    for step in range(2):
        opt.zero_grad()
        model(torch.randn(6, 3)).square().mean().backward()
        opt.step()
    validate()
print("batches counted:", model.module[1].num_batches_tracked.item(), "of 4")
dist.destroy_process_group()
