# kind: B
# ranks: 2
# outcome: ok
# says: weights moved: False
# diagnosis: (?=.*(set_requires_gradient_sync|gradient synchroni))(?=.*(step|last))
# why: set_requires_gradient_sync is true for the first microbatch, not the last: step() finds no gradient; pytorch#118298
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
fully_shard(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
before = model[0].weight.full_tensor().clone()
torch.manual_seed(rank)
micro_batches = 3
for i in range(micro_batches):
    model.set_requires_gradient_sync(i == micro_batches)
    model(torch.randn(5, 4)).square().mean().backward()
opt.step()
print("weights moved:", bool((model[0].weight.full_tensor() != before).any()))
dist.destroy_process_group()
