# kind: D
# ranks: 3
# outcome: error|deadlock
# says: rank 0 stops early
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*all_reduce)(?=.*line 17)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*return)
# why: early stopping on each rank's own loss: one rank leaves the loop and ends; pytorch#33148
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def fit(rank):
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    for epoch in range(6):
        loss = model(torch.ones(2, 3)).square().mean() + rank * 10
        loss.backward()
        if loss < 5 and epoch == 2:
            print("rank", rank, "stops early", flush=True)
            return

dist.init_process_group("gloo")
fit(dist.get_rank())
dist.destroy_process_group()
