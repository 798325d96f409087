# kind: D
# ranks: 3
# outcome: deadlock|error|ok
# diagnosis: (?=.*reduce)(?=.*(dst|destination|root))(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*line 12)
# why: each rank reduces to its own number instead of to one rank; NVIDIA/nccl#479
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
correct = torch.tensor([3.0 + rank])
dist.reduce(correct, dst=rank)
print(f"rank {rank}: {correct.item():.0f} correct in all")
dist.barrier()
dist.destroy_process_group()
