# kind: D
# ranks: 3
# outcome: deadlock|error
# diagnosis: (?=.*but rank 2 )(?=.*broadcast)(?=.*elif)
# why: an if / elif chain broadcasts on two of three ranks; pytorch#33148
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
config = [None]
if rank == 0:
    config = [{"lr": 0.1}]
    dist.broadcast_object_list(config, src=0)
elif rank == 1:
    dist.broadcast_object_list(config, src=0)
total = torch.ones(1)
dist.all_reduce(total)
dist.destroy_process_group()
