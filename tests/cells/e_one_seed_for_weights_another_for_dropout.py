# kind: E
# ranks: 2
# outcome: ok
# says: sharded weights equal the reference: True; masks differ: True
# no-diagnosis
# why: weights from one seed, then each rank its own for data and dropout: what torchtitan#166 asks for
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(42)
net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
want = net[0].weight.detach().clone()
fully_shard(net)
same = torch.equal(net[0].weight.full_tensor().detach(), want)
torch.manual_seed(42 + 1000 * (rank + 1))
mask = torch.nn.functional.dropout(torch.ones(32))
masks = [torch.empty(32) for _ in range(2)]
dist.all_gather(masks, mask)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(4, 6)).square().mean().backward()
    opt.step()
print(f"sharded weights equal the reference: {same}; masks differ: {not torch.equal(*masks)}")
dist.destroy_process_group()
