# kind: E
# ranks: 2
# outcome: ok
# says: loss fell: True
# no-diagnosis
# why: made before fully_shard, but its groups are given the sharded parameters afterwards, as accelerate does; accelerate#3209
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
names = {p: n for n, p in model.named_parameters()}
order = [names[p] for p in optimizer.param_groups[0]["params"]]
fully_shard(model)
sharded = dict(model.named_parameters())
optimizer.param_groups[0]["params"] = [sharded[n] for n in order]
torch.manual_seed(1 + rank)
x, y = torch.randn(16, 6), torch.randn(16, 1)
losses = []
for step in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss fell:", losses[-1] < losses[0])
dist.destroy_process_group()
