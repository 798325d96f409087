# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*all_gather)(?=.*list)(?=.*output|received)
# why: all_gather is called as if it returned the list; pytorch#33148
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
losses = dist.all_gather(torch.tensor([1.0]))
print(losses)
dist.destroy_process_group()
