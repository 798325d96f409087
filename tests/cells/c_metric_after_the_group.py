# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 13)(?=.*destroy_process_group)(?=.*line 12)
# why: a metric is reduced after destroy_process_group; pytorch#77562
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
hits = torch.tensor([3.0 + dist.get_rank()])
dist.destroy_process_group()
dist.all_reduce(hits)
