# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 1 skips batch 2
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)(?=.*line 25)
# diagnosis: (?=.*continue)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*barrier)
# why: a rank whose loss is not finite continues with the next batch and so skips a backward; pytorch#33148
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Linear(3, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = torch.full((2, 3), float("nan") if (rank, step) == (1, 2) else 1.0)
    loss = model(x).square().mean()
    if not torch.isfinite(loss):
        print("rank", rank, "skips batch", step, flush=True)
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.barrier()
dist.destroy_process_group()
