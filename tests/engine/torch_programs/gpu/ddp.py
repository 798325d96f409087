# ruff: noqa: F821, N817 - begin.py comes before it
# Stock SyncBatchNorm in stock DDP, as a lesson writes them.
from torch.nn.parallel import DistributedDataParallel as DDP

model = nn.SyncBatchNorm.convert_sync_batchnorm(net())
model = DDP(model, device_ids=[device.index])
compared(model, torch.optim.Adam(model.parameters(), lr=1e-2))
dist.destroy_process_group()
