# kind: A
# ranks: 3
# outcome: ok
# says: own hook and built-in averaging agree
# no-diagnosis
# why: a DDP communication hook written by hand (async all_reduce, then a division) equals DDP's own averaging, fp16 compression is close; pytorch#40848
import torch
import torch.nn as nn
import torch.distributed as dist
import copy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

def mean_hook(group, bucket):
    work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
    return work.get_future().then(lambda f: f.value()[0] / dist.get_world_size(group))

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
plain, hooked, halved = (DDP(copy.deepcopy(net)) for _ in range(3))
hooked.register_comm_hook(None, mean_hook)
halved.register_comm_hook(dist.group.WORLD, fp16_compress_hook)
torch.manual_seed(50 + dist.get_rank())
for step in range(3):
    x = torch.randn(4, 8)
    for m in (plain, hooked, halved):
        m.zero_grad()
        m(x).pow(2).sum().backward()
    for a, b, c in zip(plain.parameters(), hooked.parameters(), halved.parameters()):
        torch.testing.assert_close(a.grad, b.grad)
        torch.testing.assert_close(a.grad, c.grad, rtol=1e-2, atol=1e-2)
print("own hook and built-in averaging agree")
dist.destroy_process_group()
