# kind: B
# ranks: 2
# outcome: ok
# says: gradient is 0\.50 of the true one
# diagnosis: (?=.*all_reduce)(?=.*(autograd|graph|differentiab|backward|gradient))
# why: the cross-correlation is divided and all-reduced in place; autograd does not know the sum, so every gradient is 1/world; lightly#1977
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def twins_loss(a, b, reduce):
    c = a.T @ b / len(a)
    if reduce:
        c = c / dist.get_world_size()
        dist.all_reduce(c)
    return (c - torch.eye(c.shape[0])).pow(2).sum()

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(5)
net = nn.Linear(6, 3)
ddp = DDP(net)
opt = torch.optim.SGD(ddp.parameters(), lr=0.05)
both = torch.randn(2 * world, 8, 6)
opt.zero_grad()
out = ddp(torch.cat([both[2 * rank], both[2 * rank + 1]]))
loss = twins_loss(out[:8], out[8:], True)
loss.backward()
mine = net.weight.grad.clone()
twin = nn.Linear(6, 3)
twin.load_state_dict(net.state_dict())
left = twin(torch.cat([both[2 * r] for r in range(world)]))
right = twin(torch.cat([both[2 * r + 1] for r in range(world)]))
twins_loss(left, right, False).backward()
opt.step()
print(f"gradient is {(mine.norm() / twin.weight.grad.norm()).item():.2f} of the true one")
dist.destroy_process_group()
