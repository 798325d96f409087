# kind: E
# ranks: 2
# outcome: ok
# says: students equal: True, teachers equal: True
# no-diagnosis
# why: DINO: the teacher is not wrapped, has no gradients and follows the student's module by momentum on every rank
import copy
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
student = DDP(nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.Linear(10, 4)))
teacher = copy.deepcopy(student.module).requires_grad_(False)
center = torch.zeros(4)
opt = torch.optim.AdamW(student.parameters(), lr=1e-2)
torch.manual_seed(rank)
for _ in range(4):
    x = torch.randn(8, 6)
    with torch.no_grad():
        target = (teacher(x + 0.1 * torch.randn_like(x)) - center).softmax(1)
        mean = target.mean(0)
    loss = -(target * student(x).log_softmax(1)).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.module.parameters()):
            t.lerp_(s, 0.1)
        dist.all_reduce(mean)
        center.lerp_(mean / dist.get_world_size(), 0.1)

def equal(m):
    flat = torch.cat([p.detach().flatten() for p in m.parameters()])
    seen = [torch.empty_like(flat) for _ in range(2)]
    dist.all_gather(seen, flat)
    return torch.equal(*seen)

print(f"students equal: {equal(student)}, teachers equal: {equal(teacher)}")
dist.destroy_process_group()
