# kind: E
# ranks: 2
# outcome: ok
# says: sums: 3\.0 3\.0 3\.0 3\.0
# no-diagnosis
# why: asynchronous calls that are waited for by wait(), by polling is_completed(), by a future, and an isend; pytorch#27806
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
one, two, three, four = (torch.full((8,), float(rank + 1)) for _ in range(4))
first = dist.all_reduce(one, async_op=True)
second = dist.all_reduce(two, async_op=True)
third = dist.all_reduce(three, async_op=True)
first.wait()
while not second.is_completed():
    pass
third.get_future().wait()
if rank == 0:
    dist.isend(torch.ones(2), dst=1).wait()
else:
    got = torch.zeros(2)
    dist.irecv(got, src=0).wait()
works = [dist.all_reduce(four, async_op=True)]
for work in works:
    work.wait()
print("sums:", *(t[0].item() for t in (one, two, three, four)))
dist.destroy_process_group()
