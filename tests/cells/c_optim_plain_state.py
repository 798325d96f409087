# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*optimizer)(?=.*set_optimizer_state_dict)
# why: an unsharded optimizer's state is loaded into the optimizer of a sharded model; pytorch#126950
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
def build():
    torch.manual_seed(0)
    return nn.Linear(4, 8)
plain = build()
o = torch.optim.Adam(plain.parameters())
plain(torch.randn(3, 4)).sum().backward()
o.step()
model = build()
fully_shard(model)
opt = torch.optim.Adam(model.parameters())
opt.load_state_dict(o.state_dict())
model(torch.randn(3, 4)).sum().backward()
opt.step()
dist.destroy_process_group()
