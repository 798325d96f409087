# kind: E
# ranks: 2
# outcome: ok
# says: holds the loaded weights: True
# no-diagnosis
# why: what each rank initialised does not matter: the full state dict is loaded into the shards before training; pytorch#140183
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(77 + rank)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
for layer in (net[0], net[2], net):
    fully_shard(layer)
torch.manual_seed(5)
pretrained = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).state_dict()
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
set_model_state_dict(net, dict(pretrained) if rank == 0 else {}, options=options)
held = torch.equal(net[0].weight.full_tensor(), pretrained["0.weight"])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    net(torch.randn(5, 3)).sum().backward()
    opt.step()
    opt.zero_grad()
print("holds the loaded weights:", held)
dist.destroy_process_group()
