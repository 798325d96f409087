# kind: D
# ranks: 4
# outcome: deadlock|error
# diagnosis: (?=.*order)(?=.*group)(?=.*line 15)(?=.*line 18)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*rank[^.;]{0,16}?(?<!\d)2(?!\d))
# why: odd ranks reduce along the columns first, even ranks along the rows: a ring of ranks each waiting for the next; pytorch#131781
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
rank = dist.get_rank()
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
loss, norm = torch.tensor(1.0 + rank), torch.tensor(10.0 + rank)
if rank in (0, 3):
    dist.all_reduce(loss, group=mesh.get_group("dp"))
    dist.all_reduce(norm, group=mesh.get_group("tp"))
else:
    dist.all_reduce(norm, group=mesh.get_group("tp"))
    dist.all_reduce(loss, group=mesh.get_group("dp"))
print(rank, loss.item(), norm.item())
dist.destroy_process_group()
