# kind: C
# ranks: 4
# outcome: error
# diagnosis: (?=.*member)(?=.*group)
# why: every rank wraps a model in DDP with a group that two of them are no members of; pytorch#67600
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
g = dist.new_group([0, 1])
model = DDP(nn.Linear(4, 3), process_group=g)
model(torch.randn(5, 4)).sum().backward()
dist.destroy_process_group()
