# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 18)(?=.*DTensor)(?=.*full_tensor|to_local)
# why: an exponential moving average mixes plain and sharded tensors; pytorch#153354
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
average, model = nn.Linear(6, 6), nn.Linear(6, 6)
fully_shard(model)
model(torch.randn(4, 6)).sum().backward()
with torch.no_grad():
    for slow, fast in zip(average.parameters(), model.parameters()):
        slow.lerp_(fast, 0.1)
dist.destroy_process_group()
