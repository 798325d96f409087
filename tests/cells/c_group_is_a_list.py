# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*group)(?=.*new_group)(?=.*list)
# why: a list of ranks is passed as the group; pytorch#25390
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.ones(3)
dist.all_reduce(x, group=[0, 1])
print(x)
dist.destroy_process_group()
