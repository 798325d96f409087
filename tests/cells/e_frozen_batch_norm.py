# kind: E
# ranks: 2
# outcome: ok
# says: batches counted: 4 of 4; frozen: 0
# no-diagnosis
# why: back to train() after each validation, with one batch norm kept in evaluation mode on purpose; joeynmt#184
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(net))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for epoch in range(2):
    model.train()
    model.module[0].eval()
    for step in range(2):
        opt.zero_grad()
        model(torch.randn(6, 3)).square().mean().backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(8, 3))
frozen, live = model.module[0], model.module[2]
print(f"batches counted: {live.num_batches_tracked.item()} of 4; frozen: {frozen.num_batches_tracked.item()}")
dist.destroy_process_group()
