# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*dcp\.save)(?=.*every rank)
# why: dcp.save is called on rank 0 only, like torch.save; pytorch#122903, bghira/SimpleTuner#1880
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
fully_shard(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.randn(3, 4)).sum().backward()
    opt.step()
    opt.zero_grad()
if dist.get_rank() == 0:
    dcp.save(model.state_dict(), checkpoint_id="step2")
dist.barrier()
print("saved")
dist.destroy_process_group()
