# kind: B
# ranks: 2
# outcome: ok
# says: rank 0 reports 8 hits
# says: rank 1 reports 16 hits
# diagnosis: (?=.*(all_reduce|reduc))(?=.*(temporary|copy|thrown|never (used|read)|unused|not (used|read)|result|clone))
# why: all_reduce sums a temporary tensor in place, the variable that is reported stays local; Lightning#2398-like metric threads
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Linear(2, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(31 + rank)
for _ in range(2):
    x = torch.randn(6, 2)
    opt.zero_grad()
    model(x).abs().mean().backward()
    opt.step()
hits = 8 * (rank + 1)
dist.all_reduce(torch.tensor(hits))
print("rank", rank, "reports", hits, "hits")
dist.destroy_process_group()
