# kind: D
# ranks: 2
# outcome: deadlock
# diagnosis: (?=.*broadcast)(?=.*line 12)(?=.*src|root)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))
# why: every rank broadcasts from itself; NVIDIA/nccl#479
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
seed = torch.tensor([rank + 41])
dist.broadcast(seed, src=rank)
print("seed", seed.item())
dist.destroy_process_group()
