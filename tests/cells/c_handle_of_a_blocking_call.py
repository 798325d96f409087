# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*line 13)(?=.*async_op)
# why: wait() on what a blocking collective returned; pytorch#129341
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(3)
work = dist.all_reduce(x)
work.wait()
dist.destroy_process_group()
