# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*forward)(?=.*line 17|line 25)(?=.*shard|summon_full_params)
# why: a method that bypasses FSDP's forward finds flat shards; pytorch#109385
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(5, 5)

    def embed(self, x):
        return self.inner(x)

    def forward(self, x):
        return self.embed(x).relu()

dist.init_process_group("gloo")
model = FSDP(Encoder())
model(torch.randn(2, 5)).sum().backward()
print(model.embed(torch.randn(2, 5)).shape)
dist.destroy_process_group()
