# kind: B
# ranks: 2
# outcome: ok
# says: ranks agreed before wrapping: False
# diagnosis: (?=.*(init|seed))(?=.*(differ|own|each rank|broadcast|sync_module_states))(?=.*(weight|param|model|shard))
# why: no common seed and no sync_module_states: FSDP1 shards a different model on each rank; torchtitan#166, pytorch#75870
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1234 + rank)
model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
first = model[0].weight.detach().clone()
both = [torch.empty_like(first) for _ in range(2)]
dist.all_gather(both, first)
print("ranks agreed before wrapping:", torch.equal(*both))
model = FSDP(model, device_id=torch.device("cpu"), use_orig_params=True)
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(2):
    model(torch.randn(8, 5)).square().mean().backward()
    opt.step()
    opt.zero_grad()
dist.destroy_process_group()
