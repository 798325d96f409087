# kind: E
# ranks: 2
# outcome: ok
# says: backbone loaded: True
# no-diagnosis
# why: strict=False on purpose: the backbone is loaded, the new head is not in the file; examples#1029
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 10)))
saved = {k: v for k, v in model.module.state_dict().items() if k.startswith("0.")}
torch.manual_seed(1)
again = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
again.load_state_dict(saved, strict=False)
print("backbone loaded:", torch.equal(again[0].weight, model.module[0].weight))
dist.destroy_process_group()
