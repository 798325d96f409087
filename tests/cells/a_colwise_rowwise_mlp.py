# kind: A
# ranks: 2
# outcome: ok
# says: tensor parallel equals one process
# no-diagnosis
# why: parallelize_module with ColwiseParallel and RowwiseParallel trains to the one-process weights, gradient clipping included; torchtitan#1092
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

def mlp():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.Linear(10, 3))

def train(net, data):
    opt = torch.optim.AdamW(net.parameters(), lr=0.02)
    for x in data:
        opt.zero_grad()
        net(x).square().mean().backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        opt.step()
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
torch.manual_seed(0)
data = torch.randn(4, 5, 6)                       # tensor parallel: every rank sees the whole batch
alone = mlp()
want = train(alone, data)
net = parallelize_module(mlp(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
got = train(net, data)
torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
for p, q in zip(net.parameters(), alone.parameters()):
    p = p.full_tensor() if hasattr(p, "full_tensor") else p
    torch.testing.assert_close(p, q.data, rtol=1e-4, atol=1e-5)
print("tensor parallel equals one process")
dist.destroy_process_group()
