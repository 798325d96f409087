# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*inference_mode)(?=.*no_grad|clone)
# why: features made under inference_mode are trained on
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 3))
with torch.inference_mode():
    feats = nn.Linear(4, 4)(torch.randn(5, 4))
model(feats).sum().backward()
dist.destroy_process_group()
