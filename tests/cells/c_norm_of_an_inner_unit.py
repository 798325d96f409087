# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 14)(?=.*clip_grad_norm_)(?=.*root|outermost)
# why: clip_grad_norm_ of an inner FSDP unit; pytorch#121020
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

dist.init_process_group("gloo")
model = FSDP(nn.Sequential(FSDP(nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 1)))
model(torch.randn(3, 4)).sum().backward()
model.module[0].clip_grad_norm_(1.0)
dist.destroy_process_group()
