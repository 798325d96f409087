# kind: A
# ranks: 2
# outcome: ok
# says: 3 optimizer steps of 4 microbatches equal 3 steps on the whole batch
# no-diagnosis
# why: gradient accumulation under DDP: no_sync for all but the last microbatch, loss divided by their number; FunASR#3472, nanoGPT#34
import contextlib
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

ACCUMULATE = 4
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def make():
    torch.manual_seed(12)
    return nn.Sequential(nn.Linear(7, 9), nn.GELU(), nn.Linear(9, 2)).double()


torch.manual_seed(3)
data = torch.randn(3, ACCUMULATE * world * 2, 7, dtype=torch.float64)
alone, model = make(), DDP(make(), gradient_as_bucket_view=True)
ref, opt = (torch.optim.Adam(m.parameters(), lr=0.02) for m in (alone, model))
for batch in data:
    ref.zero_grad()
    alone(batch).square().mean().backward()
    ref.step()
    opt.zero_grad()
    microbatches = batch.view(ACCUMULATE, world, 2, 7)[:, rank]
    for i, x in enumerate(microbatches):
        last = (i + 1) % ACCUMULATE == 0
        with contextlib.nullcontext() if last else model.no_sync():
            (model(x).square().mean() / ACCUMULATE).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e9)  # after the last one: on reduced gradients
    opt.step()
for p, q in zip(model.module.parameters(), alone.parameters()):
    torch.testing.assert_close(p, q)
if rank == 0:
    print("3 optimizer steps of 4 microbatches equal 3 steps on the whole batch")
dist.destroy_process_group()
