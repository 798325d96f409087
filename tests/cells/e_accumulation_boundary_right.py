# kind: E
# ranks: 2
# outcome: ok
# says: replicas equal after 3 steps
# no-diagnosis
# why: the correct twin of the off-by-one no_sync loop: the micro-batch that precedes step() synchronises, also at the end of the data; FunASR#3472
from contextlib import nullcontext
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(3)
model = DistributedDataParallel(nn.Sequential(nn.Linear(7, 7), nn.ELU(), nn.Linear(7, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
every, micro_batches = 3, 8  # the last group has only two
torch.manual_seed(rank)
for i in range(micro_batches):
    last = (i + 1) % every == 0 or i + 1 == micro_batches
    x = torch.randn(5, 7)
    with nullcontext() if last else model.no_sync():
        model(x).pow(2).mean().div(every).backward()
    if last:
        opt.step()
        opt.zero_grad()
w = model.module[0].weight.detach()
pair = [torch.empty_like(w) for _ in range(2)]
dist.all_gather(pair, w)
assert torch.equal(*pair)
print("replicas equal after 3 steps")
dist.destroy_process_group()
