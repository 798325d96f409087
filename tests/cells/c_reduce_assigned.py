# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 1\d)(?=.*all_reduce)(?=.*returns nothing|None)
# why: the loss is set to what all_reduce returns; pytorch#129341
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
loss = torch.ones(1)
loss = dist.all_reduce(loss, op=dist.ReduceOp.SUM)
loss /= world
dist.destroy_process_group()
