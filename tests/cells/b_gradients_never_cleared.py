# kind: B
# ranks: 2
# outcome: ok
# says: gradient norms grow: True
# diagnosis: (?=.*zero_grad)(?=.*(never|not|without|missing|accumulat|add|previous|earlier))
# why: zero_grad() is missing, each step applies the sum of all gradients so far; classic forum report
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
torch.manual_seed(dist.get_rank() + 9)
norms = []
for batch in range(5):
    x = torch.randn(32, 5)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    norms.append(model.module.weight.grad.norm().item())
    optimizer.step()
print("gradient norms grow:", norms == sorted(norms))
dist.destroy_process_group()
