# kind: E
# ranks: 2
# outcome: ok
# says: rank 0 evaluates the average: loss \d
# no-diagnosis
# why: the averaged model lives on rank 0 only: replicas are equal, so one copy is enough; timm ModelEmaV2
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
ddp = DDP(nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1)))
ema = AveragedModel(ddp.module, multi_avg_fn=get_ema_multi_avg_fn(0.9)) if rank == 0 else None
opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
torch.manual_seed(rank + 1)
for step in range(6):
    x = torch.randn(8, 5)
    opt.zero_grad()
    (ddp(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    opt.step()
    if ema is not None:
        ema.update_parameters(ddp.module)
if rank == 0:
    ema.eval()
    with torch.no_grad():
        x = torch.randn(40, 5)
        print(f"rank 0 evaluates the average: loss {(ema(x) - x.sum(1, keepdim=True)).pow(2).mean().item():.3f}")
    torch.save(ema.module.state_dict(), "ema.pt")
dist.barrier()
dist.destroy_process_group()
