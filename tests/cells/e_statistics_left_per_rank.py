# kind: E
# ranks: 2
# outcome: ok
# says: rank 0 saved after \d steps
# no-diagnosis
# why: detectron2 trains plain BatchNorm with broadcast_buffers=False on purpose and averages the statistics before saving
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Conv1d(4, 1, 3)), broadcast_buffers=False)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
torch.manual_seed(rank)
for step in range(4):
    opt.zero_grad()
    model(torch.randn(4, 2, 12) + rank).pow(2).mean().backward()
    opt.step()
for name, buffer in model.module.named_buffers():
    if buffer.is_floating_point():
        dist.all_reduce(buffer)
        buffer /= world
if rank == 0:
    torch.save(model.module.state_dict(), "bn.pt")
    print("rank 0 saved after", step + 1, "steps")
dist.barrier()
dist.destroy_process_group()
