# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*barrier)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*lock\.acquire)
# why: one rank waits for a lock that nobody releases; Lightning#11242
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
import threading
lock = threading.Lock()
lock.acquire()
if rank == 1:
    lock.acquire()
dist.barrier()
dist.destroy_process_group()
