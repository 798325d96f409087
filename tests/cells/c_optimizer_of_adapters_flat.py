# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 21)(?=.*requires_grad|frozen)(?=.*use_orig_params)
# why: frozen base and trained adapters in one FSDP unit; pytorch#104690, peft#1702
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.low = nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.low(x)

dist.init_process_group("gloo")
model = FSDP(Adapted())
dist.destroy_process_group()
