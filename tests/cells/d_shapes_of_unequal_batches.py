# kind: D
# ranks: 2
# outcome: error
# says: rank 1 has 36 samples
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)(?=.*\b24\b)
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*\b36\b)(?=.*line 19)(?=.*(size|shape))
# why: per-sample losses of batches of unequal size are summed: gloo aborts one rank; NVIDIA/nccl#1394
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = nn.Linear(5, 1)
batch = torch.randn(24 if rank == 0 else 36, 5)
print("rank", rank, "has", len(batch), "samples", flush=True)
per_sample = model(batch).detach().square().squeeze(1)
dist.all_reduce(per_sample)
print("mean", per_sample.mean().item())
dist.destroy_process_group()
