# kind: B
# ranks: 2
# outcome: ok
# says: weights loaded: False
# diagnosis: (?=.*load_state_dict)(?=.*(strict|key|prefix))
# why: the wrapper's state_dict is loaded into the plain model with strict=False, whose keys lack the prefix; examples#1029
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(3, 2))
torch.save(model.state_dict(), f"rank{rank}.pt")
torch.manual_seed(1)
again = nn.Linear(3, 2)
again.load_state_dict(torch.load(f"rank{rank}.pt"), strict=False)
print("weights loaded:", torch.equal(again.weight, model.module.weight))
dist.destroy_process_group()
