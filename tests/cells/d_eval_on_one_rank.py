# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 1 trains
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*all_gather)(?=.*line 21)
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)(?=.*eval\(\))
# why: one rank stays in eval mode after validation, so its SyncBatchNorm does not take part; pytorch#44957
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.SyncBatchNorm(6), nn.ReLU(), nn.Linear(6, 1))
best = 0.5
if rank == 0:
    net.eval()
    best = net(torch.randn(8, 4)).mean().item()         # and never back to train()
print("rank", rank, "trains", flush=True)
out = net(torch.randn(8, 4)).square().mean()
total = out.detach().clone()
dist.all_reduce(total)
out.backward()
dist.destroy_process_group()
