# kind: E
# ranks: 2
# outcome: ok
# no-diagnosis
# why: asynchronous calls and messages with tags that cross; pytorch#129341
import torch, torch.distributed as dist
dist.init_process_group("gloo")
hs = [dist.all_reduce(torch.ones(i + 1), async_op=True) for i in range(4)]
for h in hs: h.wait()
r = dist.get_rank()
if r == 0:
    reqs = [dist.isend(torch.ones(3), 1, tag=5), dist.isend(torch.ones(2), 1, tag=6)]
else:
    b, a = torch.empty(2), torch.empty(3)
    reqs = [dist.irecv(b, 0, tag=6), dist.irecv(a, 0, tag=5)]
for q in reqs: q.wait()
dist.destroy_process_group()
