# kind: D
# ranks: 2
# outcome: error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)(?=.*1000 ms|timeout)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*line 16)
# why: rank 1 prepares data for longer than the group's timeout; pytorch#77562
import time
from datetime import timedelta
import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=1))
rank = dist.get_rank()
if rank == 1:
    time.sleep(2)                                       # builds its cache
ready = torch.ones(1)
dist.all_reduce(ready)
print("ready", ready.item())
dist.destroy_process_group()
