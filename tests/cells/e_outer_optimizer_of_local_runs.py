# kind: E
# ranks: 2
# outcome: ok
# says: replicas equal after the outer step: True
# no-diagnosis
# why: DiLoCo: ranks drift on purpose for some inner steps, an outer optimizer applies the averaged difference
import copy
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
local = nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 1))
anchor = copy.deepcopy(local)
inner = torch.optim.AdamW(local.parameters(), lr=1e-2)
outer = torch.optim.SGD(anchor.parameters(), lr=0.7, momentum=0.9, nesterov=True)
torch.manual_seed(1 + rank)
for round_ in range(2):
    for _ in range(3):
        x = torch.randn(8, 5)
        inner.zero_grad()
        (local(x) - x[:, :1]).pow(2).mean().backward()
        inner.step()
    for a, p in zip(anchor.parameters(), local.parameters()):
        delta = a.detach() - p.detach()
        dist.all_reduce(delta)
        a.grad = delta / world
    outer.step()
    outer.zero_grad()
    local.load_state_dict(anchor.state_dict())
w = local[0].weight.detach()
seen = [torch.empty_like(w) for _ in range(world)]
dist.all_gather(seen, w)
print("replicas equal after the outer step:", torch.equal(*seen))
dist.destroy_process_group()
