# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 1: skipping batch 1
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*(barrier|ended|caught|except|skip))
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all[-_ ]?reduce)
# why: a rank catches the error of a bad batch and continues, so one backward has no partner; fairseq#388, TorchSpec#126
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(3, 4) if (rank, i) != (1, 1) else torch.randn(3, 5)
    try:
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
    except RuntimeError:
        print(f"rank {rank}: skipping batch {i}", flush=True)
dist.barrier()
print("epoch done")
dist.destroy_process_group()
