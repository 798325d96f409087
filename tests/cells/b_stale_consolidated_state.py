# kind: B
# ranks: 2
# outcome: ok
# says: saved optimizer state is of step 1, the model is of step 4
# diagnosis: (?=.*consolidate_state_dict)(?=.*(stale|old|step|again|since|before))
# why: consolidate_state_dict is called once; later state_dict() calls return that old copy; ZeroRedundancyOptimizer docs, pytorch#51601
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1)))
opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2)
torch.manual_seed(rank)
done = 0
for step in range(4):
    opt.zero_grad()
    model(torch.randn(5, 6)).pow(2).mean().backward()
    opt.step()
    done += 1
    if step == 0:
        opt.consolidate_state_dict(to=0)
if rank == 0:
    torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "step": done}, "last.pt")
    saved = torch.load("last.pt")
    print(f"saved optimizer state is of step {min(int(s['step']) for s in saved['opt']['state'].values())}, the model is of step {saved['step']}")
dist.barrier()
dist.destroy_process_group()
