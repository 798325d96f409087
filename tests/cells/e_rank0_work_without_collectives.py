# kind: E
# ranks: 3
# outcome: ok
# says: rank 0 saved \d+ tensors, accuracy 0\.\d+
# no-diagnosis
# why: rank 0 evaluates ddp.module and saves alone, all ranks meet at the barrier; nothing inside the branch communicates; pytorch#54059
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
ddp = DDP(
    nn.SyncBatchNorm.convert_sync_batchnorm(
        nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    )
)
opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
torch.manual_seed(10 + rank)
for epoch in range(2):
    ddp.train()
    for step in range(2):
        x = torch.randn(12, 3)
        loss = nn.functional.cross_entropy(ddp(x), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        ddp.eval()
        with torch.no_grad():
            x = torch.randn(50, 3)
            accuracy = (ddp.module(x).argmax(1) == (x[:, 0] > 0)).float().mean().item()
        torch.save(ddp.module.state_dict(), "best.pt")
        print("rank 0 saved", len(torch.load("best.pt")), f"tensors, accuracy {accuracy:.2f}")
    dist.barrier()
dist.destroy_process_group()
