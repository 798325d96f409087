# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 18)(?=.*load_state_dict)(?=.*set_model_state_dict|broadcast_from_rank0)
# why: a full state dict is loaded into a sharded model by load_state_dict; pytorch#109385
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

dist.init_process_group("gloo")
pretrained = net().state_dict()
model = net()
fully_shard(model)
model.load_state_dict(pretrained)
dist.destroy_process_group()
