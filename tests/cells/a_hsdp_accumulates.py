# kind: A
# ranks: 4
# outcome: ok
# says: HSDP with two microbatches equals one process
# no-diagnosis
# why: fully_shard on a 2x2 mesh (replicate, shard) with gradient accumulation by set_requires_gradient_sync; torchtitan#292, pytorch#119937
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

def build():
    torch.manual_seed(9)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))

dist.init_process_group("gloo")
rank = dist.get_rank()
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
torch.manual_seed(1)
data = torch.randn(3, 2, 8, 5)                    # steps, microbatches, rows, features
alone, model = build(), build()
for i in (0, 2, 4):
    fully_shard(model[i], mesh=mesh, reshard_after_forward=False)
fully_shard(model, mesh=mesh)
one, opt = torch.optim.SGD(alone.parameters(), lr=0.3, momentum=0.9), torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
for micro in data:
    one.zero_grad()
    (sum(alone(x).square().mean() for x in micro) / 2).backward()
    one.step()
    for i, x in enumerate(micro):
        model.set_requires_gradient_sync(i == 1)
        (model(x[rank * 2:rank * 2 + 2]).square().mean() / 2).backward()
    opt.step()
    opt.zero_grad()
for p, q in zip(model.parameters(), alone.parameters()):
    torch.testing.assert_close(p.full_tensor(), q.data, rtol=1e-4, atol=1e-5)
print("HSDP with two microbatches equals one process")
dist.destroy_process_group()
