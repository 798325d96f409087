# kind: A
# ranks: 3
# outcome: ok
# says: rank 2 trained on 5 batches, rank 0 on 2; all weights equal those of one process
# no-diagnosis
# why: ranks with different numbers of batches train on with model.join(), which shadows the missing all_reduces; pytorch#38174, pytorch#33148
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
num_batches = [2, 4, 5]


def make():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def batches(of_rank):
    generator = torch.Generator().manual_seed(of_rank)
    return [torch.randn(4, 5, generator=generator).double() for _ in range(num_batches[of_rank])]


model = DDP(make())
opt = torch.optim.SGD(model.parameters(), lr=0.1)
with model.join(divide_by_initial_world_size=False):
    for x in batches(rank):
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()

# One process: in each step, the mean of the losses of those ranks that still had a batch.
alone = make()
opt = torch.optim.SGD(alone.parameters(), lr=0.1)
for step in range(max(num_batches)):
    present = [batches(r)[step] for r in range(world) if step < num_batches[r]]
    opt.zero_grad()
    torch.stack([alone(x).square().mean() for x in present]).mean().backward()
    opt.step()
for got, want in zip(model.module.parameters(), alone.parameters()):
    torch.testing.assert_close(got, want)
if rank == 0:
    print("rank 2 trained on 5 batches, rank 0 on 2; all weights equal those of one process")
dist.destroy_process_group()
