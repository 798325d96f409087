# kind: E
# ranks: 2
# outcome: ok
# says: loss equals the whole model's: True
# no-diagnosis
# why: tensor parallelism by hand: every rank holds its own columns and rows and steps them; the replicated bias gets equal gradients
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.nn as dnn

class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g

class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
whole = nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 3, bias=False))
mine = nn.Sequential(nn.Linear(6, 4, bias=False), nn.ReLU(), nn.Linear(4, 3, bias=False))
with torch.no_grad():
    mine[0].weight.copy_(whole[0].weight[4 * rank:4 * rank + 4])
    mine[2].weight.copy_(whole[2].weight[:, 4 * rank:4 * rank + 4])
opt, opt_whole = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (mine, whole))
same = True
for step in range(3):
    x = torch.randn(5, 6)
    loss = Sum.apply(mine(Copy.apply(x))).square().mean()
    want = whole(x).square().mean()
    same &= torch.allclose(loss, want, atol=1e-5)
    for o, l in ((opt, loss), (opt_whole, want)):
        o.zero_grad()
        l.backward()
        o.step()
print("loss equals the whole model's:", same)
dist.destroy_process_group()
