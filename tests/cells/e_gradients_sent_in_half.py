# kind: E
# ranks: 2
# outcome: ok
# says: replicas equal with compressed gradients: True
# no-diagnosis
# why: fp16 and PowerSGD communication hooks change the gradients on purpose and keep the replicas equal
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
same = []
for kind in ("fp16", "power"):
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)))
    if kind == "fp16":
        model.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    else:
        state = powerSGD_hook.PowerSGDState(dist.group.WORLD, matrix_approximation_rank=1, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(4 + rank)
    for _ in range(5):
        opt.zero_grad()
        model(torch.randn(8, 16)).square().mean().backward()
        opt.step()
    w = model.module[0].weight.detach().clone()
    seen = [torch.empty_like(w) for _ in range(2)]
    dist.all_gather(seen, w)
    same.append(torch.equal(*seen))
print("replicas equal with compressed gradients:", all(same))
dist.destroy_process_group()
