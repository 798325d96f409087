# kind: B
# ranks: 2
# outcome: ok
# says: head differs between ranks: True
# diagnosis: (?=.*(unit|shard))(?=.*(plain|not shard|no unit|root))(?=.*(gradient|averag|reduc))
# why: only the blocks are sharded; embedding and head stay plain tensors that nobody reduces; UniRL#7
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return self.head(x)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = Tagger()
for block in model.blocks:
    fully_shard(block)
opt = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
torch.manual_seed(1 + rank)
for step in range(3):
    opt.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(3, (8,))).backward()
    opt.step()
mine = model.head.weight.detach().clone()
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine)
print("head differs between ranks:", not torch.equal(*both))
dist.destroy_process_group()
