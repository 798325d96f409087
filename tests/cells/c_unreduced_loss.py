# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line \d+)(?=.*mean\(\))
# why: backward of a loss per sample under DDP
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 3))
loss = nn.functional.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3), reduction="none").mean(1)
loss.backward()
dist.destroy_process_group()
