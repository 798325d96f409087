# kind: E
# ranks: 2
# outcome: ok
# no-diagnosis
# why: ranks with fewer batches make up the missing calls; pytorch#33148
import torch, torch.distributed as dist
dist.init_process_group("gloo")
r = dist.get_rank()
mine = 3 if r == 0 else 1
for i in range(mine):
    x = torch.ones(1)
    dist.all_reduce(x)
for i in range(3 - mine):
    x = torch.zeros(1)
    dist.all_reduce(x)
dist.destroy_process_group()
