# kind: A
# ranks: 4
# outcome: ok
# says: after 4 steps the 4 ranks and the single process agree
# no-diagnosis
# why: a small conv net trained with DDP + SyncBatchNorm follows the one-process run on the whole batch; pytorch#78078, spacetimeformer#90
import torch
from torch import nn, optim
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3),
        nn.BatchNorm2d(6),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    ).double()


def train(net, images, labels):
    opt = optim.SGD(net.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-3)
    losses = []
    for step in range(4):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(images[step]), labels[step])
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    return torch.stack(losses)


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
images, labels = torch.randn(4, 8, 1, 8, 8, dtype=torch.float64), torch.randint(0, 3, (4, 8))
alone = build()
expected = train(alone, images, labels)
replica = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(build()))
losses = train(replica, images[:, rank::world], labels[:, rank::world])
dist.all_reduce(losses)
torch.testing.assert_close(losses / world, expected)
for (name, want), got in zip(alone.state_dict().items(), replica.module.state_dict().values()):
    torch.testing.assert_close(got, want, rtol=1e-7, atol=1e-9, msg=name)
if rank == 0:
    print("after 4 steps the 4 ranks and the single process agree")
dist.destroy_process_group()
