# kind: E
# ranks: 2
# outcome: ok
# says: gradient equals the single process one: True
# no-diagnosis
# why: CLIP's loss over all ranks with the differentiable all_gather, or with the own slice put back and the loss scaled; open_clip#616
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.nn
from torch.nn.parallel import DistributedDataParallel as DDP

def clip_loss(a, b):
    logits = a @ b.T
    labels = torch.arange(len(a))
    return (nn.functional.cross_entropy(logits, labels) + nn.functional.cross_entropy(logits.T, labels)) / 2

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
tower = nn.Linear(6, 4)
ddp = DDP(tower)
opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
images, texts = torch.randn(world, 5, 6), torch.randn(world, 5, 6)
both = ddp(torch.cat([images[rank], texts[rank]]))
all_i = torch.cat(torch.distributed.nn.all_gather(both[:5].contiguous()))
all_t = torch.cat(torch.distributed.nn.all_gather(both[5:].contiguous()))
loss = clip_loss(all_i, all_t)
loss.backward()
got = tower.weight.grad.clone()
twin = nn.Linear(6, 4)
twin.load_state_dict(tower.state_dict())
clip_loss(twin(images.flatten(0, 1)), twin(texts.flatten(0, 1))).backward()
opt.step()
logged = loss.detach().clone()
dist.all_reduce(logged)
print("gradient equals the single process one:", torch.allclose(got, twin.weight.grad, atol=1e-5))
dist.destroy_process_group()
