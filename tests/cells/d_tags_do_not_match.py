# kind: D
# ranks: 2
# outcome: deadlock
# diagnosis: (?=.*tag)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*send)(?=.*line 12)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*recv)(?=.*line 14)
# why: send and recv name different tags; NVIDIA/nccl#479
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
step = dist.get_rank()
if dist.get_rank() == 0:
    dist.send(torch.ones(3), dst=1, tag=step)
else:
    dist.recv(torch.empty(3), src=0, tag=step)
dist.destroy_process_group()
