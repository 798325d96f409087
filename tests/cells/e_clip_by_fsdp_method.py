# kind: E
# ranks: 2
# outcome: ok
# says: norms equal: True
# no-diagnosis
# why: an FSDP1 model clips with its own method, a DDP model with torch.nn.utils; pytorch#72548
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
sharded = FSDP(nn.Linear(6, 5), device_id=torch.device("cpu"))
replica = DDP(nn.Linear(6, 5))
torch.manual_seed(10 + rank)
norms = []
for model in (sharded, replica):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(4, 6)).square().mean().backward()
    if model is sharded:
        norms.append(model.clip_grad_norm_(0.01))
    else:
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.01))
    opt.step()
mine = torch.stack([n.detach() for n in norms])
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine)
print("norms equal:", torch.allclose(*both))
dist.destroy_process_group()
