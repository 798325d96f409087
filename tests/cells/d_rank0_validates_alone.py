# kind: D
# ranks: 3
# outcome: deadlock|error
# says: rank 0 validates
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*broadcast)
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*all[-_ ]?reduce)
# why: validation through the DDP wrapper on rank 0 only: its buffer broadcast waits for ranks that are already in the metric all_reduce; pytorch#54059
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(24, 2)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    opt.zero_grad()
    model(torch.randn(6, 2, 8)).pow(2).mean().backward()
    opt.step()

model.eval()
accuracy = torch.zeros(())
if rank == 0:
    print("rank 0 validates", flush=True)
    with torch.no_grad():
        for _ in range(3):
            accuracy += (model(torch.randn(10, 2, 8)).argmax(1) == 0).float().mean() / 3
dist.all_reduce(accuracy)  # give everyone the number
print("accuracy", accuracy.item())
dist.destroy_process_group()
