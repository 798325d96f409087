# kind: C
# ranks: 3
# outcome: error
# diagnosis: (?=.*line 13)(?=.*all_gather)(?=.*get_world_size|one entry per rank)
# why: all_gather gets an output list shorter than the group; pytorch#106164
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
features = torch.randn(4, 2)
gathered = [torch.empty(4, 2)]
dist.all_gather(gathered, features)
dist.destroy_process_group()
