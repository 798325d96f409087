# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*line 15)(?=.*state-1\.pt)
# why: a rank reads a file under a name that only it uses; pytorch#143536
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    torch.save({"step": 3}, "state-0.pt")
dist.barrier()
state = torch.load(f"state-{rank}.pt")
dist.destroy_process_group()
