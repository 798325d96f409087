# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*send)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*recv)
# why: both ranks isend, one receives; NVIDIA/nccl#479
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.ones(2)
work = dist.isend(x, dst=1 - rank)
y = torch.empty(2)
if rank == 0:
    dist.recv(y, src=1)
dist.barrier()
work.wait()
dist.destroy_process_group()
