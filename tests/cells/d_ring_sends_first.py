# kind: D
# ranks: 3
# outcome: deadlock
# diagnosis: (?=.*send)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*rank[^.;]{0,16}?(?<!\d)2(?!\d))(?=.*batch_isend_irecv|isend)
# why: every rank of a ring sends before it receives; NVIDIA/nccl#479
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
keys = torch.randn(200, 200)
incoming = torch.empty_like(keys)
dist.send(keys, dst=(rank + 1) % world)
dist.recv(incoming, src=(rank - 1) % world)
print("rank", rank, "rotated")
dist.destroy_process_group()
