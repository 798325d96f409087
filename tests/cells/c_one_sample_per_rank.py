# kind: C
# ranks: 4
# outcome: error
# diagnosis: (?=.*batch)(?=.*\b(one|1|single)\b)(?=.*(sample|value|row|item|per rank|per channel|batch size))
# why: a global batch of 4 split over 4 ranks leaves one row each: plain BatchNorm1d cannot normalise it; UniMatch#8, torchcv#141
import os
import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
net = DDP(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
global_batch = torch.randn(4, 16)
target = torch.tensor([1, 7, 3, 0])
for epoch in range(2):
    x = global_batch[rank : rank + 1]
    loss = nn.functional.cross_entropy(net(x), target[rank : rank + 1])
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
