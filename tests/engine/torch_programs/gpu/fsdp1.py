# ruff: noqa: F821, N817 - begin.py comes before it
# FSDP1 as pasted: without a device_id, since on GPUs it needs none.
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net())
compared(model, torch.optim.Adam(model.parameters(), lr=1e-2))
dist.destroy_process_group()
