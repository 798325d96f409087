# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*backward)(?=.*line 16)(?=.*second|already freed)(?=.*rank[^.;]{0,16}?(?<!\d)[01](?!\d))
# why: backward twice through one forward, for two losses; pytorch#43259
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
out = model(torch.randn(6, 4))
out[:, 0].mean().backward()
out[:, 1].square().mean().backward()
dist.destroy_process_group()
