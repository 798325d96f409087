# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*barrier)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*time\.sleep)
# why: a rank polls for a file that another writes only after the barrier; Lightning#5155
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
import os, time
if rank == 1:
    while not os.path.exists("ready"):
        time.sleep(0.1)
dist.barrier()
if rank == 0:
    open("ready", "w").close()
dist.barrier()
dist.destroy_process_group()
