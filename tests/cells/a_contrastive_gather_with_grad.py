# kind: A
# ranks: 3
# outcome: ok
# says: contrastive gradients match the whole batch
# no-diagnosis
# why: CLIP-style loss over embeddings gathered with the differentiable all_gather of torch.distributed.nn; pytorch#58005
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.nn.functional import all_gather

def loss_of(a, b, targets, keys):
    return F.cross_entropy(F.normalize(a) @ F.normalize(keys).T * 5, targets)

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
images, texts = torch.randn(9, 7), torch.randn(9, 5)
tower_i, tower_t = nn.Linear(7, 4), nn.Linear(5, 4)
single = F.cross_entropy(F.normalize(tower_i(images)) @ F.normalize(tower_t(texts)).T * 5, torch.arange(9))
want = torch.autograd.grad(single, [*tower_i.parameters(), *tower_t.parameters()])
mine = slice(rank * 3, rank * 3 + 3)
a, b = tower_i(images[mine]), tower_t(texts[mine])
keys = torch.cat(all_gather(b))
loss = loss_of(a, b, torch.arange(9)[mine], keys)
loss.backward()
for p, g in zip([*tower_i.parameters(), *tower_t.parameters()], want):
    dist.all_reduce(p.grad)
    torch.testing.assert_close(p.grad / world, g, rtol=1e-4, atol=1e-5)
print("contrastive gradients match the whole batch")
dist.destroy_process_group()
