# kind: D
# ranks: 2
# outcome: ok
# says: hits
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*int32)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*float32)(?=.*dtype)
# why: one rank sums int32, the other float32: the same bytes, no error, garbage; NVIDIA/nccl#1417
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
hits = torch.tensor([3, 5, 2, 7], dtype=torch.int32)
if rank == 1:
    hits = hits * 0.5                                   # weighted: now floating point
dist.all_reduce(hits)
print("hits", hits.tolist())
dist.destroy_process_group()
