# kind: B
# ranks: 2
# outcome: ok
# says: weights moved by 0\.0000
# diagnosis: (?=.*zero_grad)(?=.*(backward|gradient))(?=.*step)
# why: zero_grad() stands between backward() and step(), so no step finds a gradient; cloneofsimo/lora#263, EdgeNets#14
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
for step in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
print("weights moved by %.4f" % (model.module.weight - before).abs().max())
dist.destroy_process_group()
