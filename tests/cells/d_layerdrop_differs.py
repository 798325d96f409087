# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*all_gather)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*blocks\.\d|layer)
# why: layer drop is drawn with each rank's own random numbers, so one rank skips a sharded layer; fairscale#796
import random
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6 + 2 * (i == 2)) for i in range(3))

    def forward(self, x):
        for block in self.blocks:
            if block.out_features == 6 and random.random() < 0.5:
                continue
            x = torch.relu(block(x))
        return x

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = Stack()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
random.seed(1 if rank == 0 else 2)                      # 0.13, 0.85 against 0.96, 0.95
model(torch.randn(4, 6)).sum().backward()
print("rank", rank, "done")
dist.destroy_process_group()
