# kind: D
# ranks: 2
# outcome: ok
# says: rank 1 trained
# diagnosis: (?=.*all_gather)(?=.*experts\.0)(?=.*experts\.1)(?=.*layer)
# why: each rank routes to another expert: their all_gathers pair up because the shards have equal sizes; pytorch#158719
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6, bias=False) for _ in range(2))
        self.head = nn.Linear(6, 1)

    def forward(self, x, expert):
        return self.head(torch.relu(self.experts[expert](x)))

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = Routed()
for expert in model.experts:
    fully_shard(expert)
fully_shard(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.randn(4, 6), (rank + step) % 2).square().mean().backward()
    opt.step()
    opt.zero_grad()
print("rank", rank, "trained")
dist.destroy_process_group()
