# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 17)(?=.*module\.)(?=.*load_state_dict|state_dict)
# why: a checkpoint of the DDP wrapper is loaded into the bare model; pytorch#3805
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

dist.init_process_group("gloo")
state = DDP(net()).state_dict()
model = net()
model.load_state_dict(state)
dist.destroy_process_group()
