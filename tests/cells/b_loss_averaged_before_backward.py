# kind: B
# ranks: 4
# outcome: ok
# says: gradient is 0\.25 of the mean
# diagnosis: (?=.*all_reduce)(?=.*(autograd|graph|differentiab|backward|gradient))
# why: the loss is all-reduced and divided by the world size before backward(): DDP averages too, so gradients are 1/world of what was meant; U2PL#16
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(3, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(world, 6, 3)
reference = nn.Linear(3, 1)
reference.load_state_dict(model.module.state_dict())
(reference(x.reshape(-1, 3)) - 1).abs().mean().backward()
for step in range(2):
    loss = (model(x[rank]) - 1).abs().mean()
    dist.all_reduce(loss)
    loss = loss / world
    opt.zero_grad()
    loss.backward()
    if step == 0:
        ratio = model.module.weight.grad.norm() / reference.weight.grad.norm()
    opt.step()
print(f"gradient is {ratio.item():.2f} of the mean")
dist.destroy_process_group()
