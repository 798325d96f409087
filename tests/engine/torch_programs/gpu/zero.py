# ruff: noqa: F821, N817 - begin.py comes before it
# The optimizer's states sharded.
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net(), device_ids=[device.index])
compared(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2))
dist.destroy_process_group()
