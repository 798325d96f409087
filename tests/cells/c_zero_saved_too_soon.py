# kind: C
# ranks: 2
# outcome: error
# says: trained 3 steps
# diagnosis: consolidate
# why: optimizer.state_dict() of a ZeroRedundancyOptimizer without consolidate_state_dict on all ranks; torchpack#18, pytorch#60285
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def save_checkpoint(path, model, optimizer):
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, path)


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 4)).mean().backward()
    optimizer.step()
print("trained 3 steps", flush=True)
if dist.get_rank() == 0:
    save_checkpoint("last.pt", model, optimizer)
dist.barrier()
dist.destroy_process_group()
