# kind: F
# ranks: 2
# outcome: ok
# says: epoch 2 loss \d+\.\d+
# why: the lesson's SyncBatchNorm + DDP lines as pasted, device_ids included, on CPU ranks with gloo; pytorch#78078
import os
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
local_rank = int(os.environ["LOCAL_RANK"])
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10)
)
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
model = DDP(model, device_ids=[local_rank])

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(local_rank)
for epoch in range(1, 3):
    images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
dist.destroy_process_group()
