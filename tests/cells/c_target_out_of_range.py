# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*label|class)(?=.*Target 3)
# why: one rank's labels go beyond the classes; torchtitan#1342
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 3))
y = torch.tensor([0, 1, 2]) + rank
nn.functional.cross_entropy(model(torch.randn(3, 4)), y).backward()
dist.destroy_process_group()
