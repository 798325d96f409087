# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*line 13)(?=.*gather_list)(?=.*None)
# why: gather_list is given on ranks that are not the destination; pytorch#33148
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
mine = torch.tensor([dist.get_rank() * 1.0])
everyone = [torch.empty(1) for _ in range(2)]
dist.gather(mine, gather_list=everyone, dst=0)
dist.destroy_process_group()
