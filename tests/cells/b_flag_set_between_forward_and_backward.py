# kind: B
# ranks: 2
# outcome: ok
# says: replicas apart by 0\.\d*[1-9]
# diagnosis: (?=.*(no_sync|require_backward_grad_sync|forward|sync))(?=.*(gradient|averag|reduc|last|backward))
# why: require_backward_grad_sync is set after the forward; DDP decides in the forward, so the last micro-batch never syncs; build-nanogpt#30
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1337)
model = DDP(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)))
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
grad_accum_steps = 3
torch.manual_seed(rank)
for step in range(3):
    optimizer.zero_grad()
    for micro_step in range(grad_accum_steps):
        x = torch.randn(5, 4)
        loss = (model(x) - x.flip(1)).pow(2).mean() / grad_accum_steps
        model.require_backward_grad_sync = (micro_step == grad_accum_steps - 1)
        loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
w = model.module[0].weight.detach().clone()
both = [torch.empty_like(w) for _ in range(2)]
dist.all_gather(both, w)
print(f"replicas apart by {(both[0] - both[1]).abs().max().item():.4f}")
dist.destroy_process_group()
