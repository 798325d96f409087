# kind: C
# ranks: 4
# outcome: error
# diagnosis: (?=.*-1)(?=.*member)
# why: get_rank(group) is used as an index on ranks outside of the group; pytorch#91760
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
group = dist.new_group([0, 2])
stages = {0: "encoder", 1: "decoder"}
print(stages[dist.get_rank(group)])
dist.destroy_process_group()
