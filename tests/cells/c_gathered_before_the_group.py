# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 10)(?=.*init_process_group)(?=.*rank[^.;]{0,16}?(?<!\d)[01](?!\d))
# why: get_rank before init_process_group; pytorch#33148
import torch
import torch.nn as nn
import torch.distributed as dist

rank = dist.get_rank()
torch.manual_seed(rank)
dist.init_process_group("gloo")
dist.destroy_process_group()
