# kind: E
# ranks: 4
# outcome: ok
# says: loss falls on every rank: True
# no-diagnosis
# why: two by two: the layer's rows are split inside of a pair and summed there in place, DDP averages across the pairs; Megatron's row-parallel layer
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class RowParallel(nn.Module):
    def __init__(self, group, rank):
        super().__init__()
        self.group = group
        whole = nn.Linear(6, 4, bias=False)
        self.part = nn.Linear(3, 4, bias=False)
        self.part.weight.data.copy_(whole.weight[:, 3 * rank:3 * rank + 3])
        self.rank = rank

    def forward(self, x):
        y = self.part(x[:, 3 * self.rank:3 * self.rank + 3])
        dist.all_reduce(y, group=self.group)
        return y

dist.init_process_group("gloo")
rank = dist.get_rank()
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
across = [dist.new_group([0, 2]), dist.new_group([1, 3])]
torch.manual_seed(0)
model = DDP(RowParallel(pairs[rank // 2], rank % 2), process_group=across[rank % 2])
opt = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(10 + rank // 2)
x = torch.randn(16, 6)
losses = []
for _ in range(6):
    loss = (model(x) - x[:, :4]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
falls = torch.tensor(int(losses[-1] < losses[0]))
dist.all_reduce(falls, op=dist.ReduceOp.MIN)
print("loss falls on every rank:", bool(falls))
dist.destroy_process_group()
