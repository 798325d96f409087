# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 12)(?=.*AVG)(?=.*integer|floating)
# why: AVG of integers; NVIDIA/nccl#1417
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
count = torch.tensor([7 + dist.get_rank()])
dist.all_reduce(count, op=dist.ReduceOp.AVG)
dist.destroy_process_group()
