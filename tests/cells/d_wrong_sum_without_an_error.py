# kind: D
# ranks: 3
# outcome: error|ok
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)2(?!\d))(?=.*all_reduce)(?=.*(size|shape))(?=.*\b8 int64)
# why: one rank brings a shorter tensor: two ranks end with exit code 0 and a wrong sum; NVIDIA/nccl#1417
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
counts = torch.ones(10 if rank != 2 else 8, dtype=torch.int64)
dist.all_reduce(counts)
print("rank", rank, "counts", counts.tolist(), flush=True)
dist.destroy_process_group()
