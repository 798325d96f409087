"""Batch norm of every kind on 2 ranks; prints the inputs' statistics as computed apart."""

import gc
import json
import weakref

import torch
import torch.distributed as dist
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
x = torch.randn(3 + rank, 4, 5, dtype=torch.float64) * 2 + 1
dist.barrier()


def moments(t):
    flat = t.transpose(0, 1).flatten(1)
    return {"mean": flat.mean(1).tolist(), "var": flat.var(1, correction=0).tolist()}


shares = [torch.empty(3 + r, 4, 5, dtype=torch.float64) for r in range(2)]
for r in range(2):
    shares[r].copy_(x) if r == rank else None
    dist.broadcast(shares[r], src=r)

net = nn.Sequential(nn.Identity(), nn.ModuleDict({"bn": nn.SyncBatchNorm(4)})["bn"]).double()
net.train()
state = torch.get_rng_state()
grad_input = x.clone().requires_grad_()
net(grad_input)  # synced
seen = {
    "rng": torch.equal(state, torch.get_rng_state()),
    "local": moments(x),
    "global": moments(torch.cat(shares)),
    "running_var": net[1].running_var.tolist(),
}
net.eval()
net(x)  # eval
net.train()
net(x[:0] if rank == 1 else x)  # one empty
nn.BatchNorm1d(4).double()(x)  # plain
nn.BatchNorm1d(100)(torch.randn(4, 100))  # wide
nn.BatchNorm1d(4, track_running_stats=False)(x.bfloat16().float())  # no running
nn.InstanceNorm1d(4)(x.float())  # instance
torch.func.vmap(nn.BatchNorm1d(4, track_running_stats=False))(torch.randn(2, 3, 4))  # vmap


class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ops.append(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


seen["ops"] = []
layer = nn.BatchNorm1d(4, track_running_stats=False, affine=False)
for normalise in (layer, layer.forward):  # with the tracers' hooks, and past them
    ops = []
    with Log():
        normalise(x)
    seen["ops"].append(ops)
alive = weakref.ref(net)
del net
gc.collect()
seen["freed"] = alive() is None
print(json.dumps(seen))
dist.destroy_process_group()
