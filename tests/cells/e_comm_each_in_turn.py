# kind: E
# ranks: 3
# outcome: ok
# no-diagnosis
# why: ranks broadcast in turn, each from its own arm of a branch; pytorch#33148
import torch, torch.distributed as dist
dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
got = []
for src in range(n):
    if src == r:
        x = torch.full((2,), float(r))
        dist.broadcast(x, src)
    else:
        x = torch.empty(2)
        dist.broadcast(x, src)
    got.append(x)
assert [g[0].item() for g in got] == [0, 1, 2]
dist.destroy_process_group()
