# kind: E
# ranks: 2
# outcome: ok
# says: weights moved: True
# no-diagnosis
# why: a batch with a bad loss is skipped by zero_grad() without a step, on all ranks alike; later steps find gradients
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.module.weight.detach().clone()
for step in range(5):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    bad = torch.tensor(float(step == 2 and rank == 1))
    dist.all_reduce(bad)
    if bad.item():
        optimizer.zero_grad(set_to_none=False)
        continue
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
print("weights moved:", bool((model.module.weight != before).all()))
dist.destroy_process_group()
