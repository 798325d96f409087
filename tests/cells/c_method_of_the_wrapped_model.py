# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 24)(?=.*sample)(?=.*\.module)
# why: a method of the model is looked for on the DDP wrapper; pytorch#109385
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)

    def sample(self, n):
        return self.linear(torch.randn(n, 4))

dist.init_process_group("gloo")
model = DDP(Generator())
print(model.sample(3).shape)
dist.destroy_process_group()
