# kind: E
# ranks: 2
# outcome: ok
# says: loss falls: True
# no-diagnosis
# why: one optimizer per parameter, stepped by a post-accumulate hook; no step() after backward(); torchtune's optimizer_in_bwd
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
for layer in (net[0], net[2], net):
    fully_shard(layer)
opts = {p: torch.optim.AdamW([p], lr=2e-2) for p in net.parameters()}

def apply(p):
    opts[p].step()
    opts[p].zero_grad()

for p in net.parameters():
    p.register_post_accumulate_grad_hook(apply)
torch.manual_seed(1 + dist.get_rank())
x = torch.randn(32, 6)
losses = []
for _ in range(8):
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    losses.append(loss.item())
print("loss falls:", losses[-1] < losses[0])
dist.destroy_process_group()
