# kind: B
# ranks: 2
# outcome: ok
# says: rank 0 took 3 steps
# says: rank 1 took 2 steps
# diagnosis: (?=.*(scaler|GradScaler|ShardedGradScaler|skip|inf|nan|step))(?=.*(shard|rank))
# why: GradScaler looks for inf in the local shard only: one rank skips its step, the other does not; FSDP needs ShardedGradScaler; pytorch FSDP threads
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = FSDP(nn.Linear(8, 8, bias=False), device_id=torch.device("cpu"))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
taken = 0
for i in range(3):
    torch.manual_seed(10 * i + rank)
    y = net(torch.randn(4, 8))
    if i == 1:
        y = torch.cat([y[:, :7], y[:, 7:] * float("inf")], 1)      # an overflow in the last output row only
    loss = y.sum()
    opt.zero_grad()
    scaler.scale(loss).backward()
    flat = next(p.grad for p in net.parameters())
    taken += int(torch.isfinite(flat).all())
    scaler.step(opt)
    scaler.update()
print("rank", rank, "took", taken, "steps")
dist.destroy_process_group()
