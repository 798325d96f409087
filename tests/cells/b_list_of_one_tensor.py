# kind: B
# ranks: 3
# outcome: ok
# says: gathered \[3\.0, 3\.0, 3\.0\]
# diagnosis: (?=.*(all_gather|gather))(?=.*(same tensor|one tensor|alias))
# why: [torch.zeros(1)] * world_size is one tensor three times: all entries end as the last rank's; pytorch#5506
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mine = torch.tensor([rank + 1.0])
gathered = [torch.zeros(1)] * world
dist.all_gather(gathered, mine)
print("gathered", [t.item() for t in gathered])
dist.destroy_process_group()
