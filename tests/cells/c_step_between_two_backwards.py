# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 18)(?=.*in.place|overwritten)(?=.*step\(\))
# why: the optimizer steps between two backwards through one forward; pytorch#22095
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
out = model(torch.randn(6, 4))
out[:, 0].mean().backward(retain_graph=True)
opt.step()
out[:, 1].square().mean().backward()
dist.destroy_process_group()
