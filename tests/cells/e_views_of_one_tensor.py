# kind: E
# ranks: 3
# outcome: ok
# says: gathered \[1\.0, 2\.0, 3\.0\]
# no-diagnosis
# why: the outputs are rows of one tensor, which is fine: they share storage but not memory; pytorch#5506
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mine = torch.tensor([rank + 1.0])
table = torch.zeros(world, 1)
dist.all_gather(list(table.unbind()), mine)
print("gathered", table.flatten().tolist())
dist.destroy_process_group()
