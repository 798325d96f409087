# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*new_group)(?=.*world size)
# why: a group of four is made in a run of two ranks; pytorch#75755
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
group = dist.new_group([0, 1, 2, 3])
x = torch.ones(3)
dist.all_reduce(x, group=group)
dist.destroy_process_group()
