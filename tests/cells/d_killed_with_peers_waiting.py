# kind: D
# ranks: 3
# outcome: error
# says: rank 2 trains
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*killed)(?=.*SIGKILL)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)
# why: one rank is killed, as by the out-of-memory killer; the others only report a closed connection; torchtitan#1342
import os
import signal
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
print("rank", rank, "trains", flush=True)
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
