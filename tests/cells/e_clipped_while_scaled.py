# kind: E
# ranks: 2
# outcome: ok
# says: replicas equal with a scaled limit: True
# no-diagnosis
# why: clipping scaled gradients is right when the limit is scaled too, and after unscale_ always; mixed-precision-pytorch#1
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
torch.manual_seed(1 + dist.get_rank())
for step in range(6):
    loss = (model(torch.randn(8, 5)) - 2).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    if step % 2:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1 * scaler.get_scale())
    else:
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    scaler.step(opt)
    scaler.update()
w = torch.cat([p.detach().flatten() for p in model.parameters()])
seen = [torch.empty_like(w) for _ in range(2)]
dist.all_gather(seen, w)
print("replicas equal with a scaled limit:", torch.equal(*seen))
dist.destroy_process_group()
