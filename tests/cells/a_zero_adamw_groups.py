# kind: A
# ranks: 3
# outcome: ok
# says: rank 0 holds the state of all 6 parameters
# says: ZeRO and plain AdamW end with identical weights
# no-diagnosis
# why: ZeroRedundancyOptimizer with decay / no-decay groups and a scheduler, saved by consolidate and reloaded; pytorch#59973, torchpack#18
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def make():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.Linear(10, 7), nn.GELU(), nn.Linear(7, 2))


def groups(net):
    return [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]


def step(net, opt, sched, x):
    opt.zero_grad()
    net(x).square().mean().backward()
    opt.step()
    sched.step()


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
data = torch.randn(6, 9, 6)
plain, net = make(), DDP(make())
ref, zero = (
    torch.optim.AdamW(groups(plain), lr=0.05),
    ZeroRedundancyOptimizer(groups(net), torch.optim.AdamW, lr=0.05),
)
schedules = [torch.optim.lr_scheduler.StepLR(o, step_size=2, gamma=0.5) for o in (ref, zero)]
for i, x in enumerate(data):
    step(plain, ref, schedules[0], x)
    step(net, zero, schedules[1], x[rank * 3 : rank * 3 + 3])
    if i == 2:  # checkpoint and resume half way
        zero.consolidate_state_dict(to=0)
        saved = [zero.state_dict() if rank == 0 else None]
        dist.broadcast_object_list(saved, src=0)
        zero.load_state_dict(saved[0])
if rank == 0:
    print("rank 0 holds the state of all", len(saved[0]["state"]), "parameters")
for a, b in zip(net.module.parameters(), plain.parameters()):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
print("ZeRO and plain AdamW end with identical weights")
dist.destroy_process_group()
