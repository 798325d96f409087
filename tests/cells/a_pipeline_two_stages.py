# kind: A
# ranks: 2
# outcome: ok
# says: pipeline gradients equal one process
# no-diagnosis
# why: two stages of torch.distributed.pipelining under 1F1B; only the last rank sees the loss, gradients equal a run in one process; pytorch#124838
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

def parts():
    torch.manual_seed(2)
    return [nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))]

def mse(out, y):
    return nn.functional.mse_loss(out, y)

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x, y = torch.randn(8, 6), torch.randn(8, 3)
whole = nn.Sequential(*parts())
mse(whole(x), y).backward()
mine = parts()[rank]
stage = PipelineStage(mine, rank, 2, torch.device("cpu"))
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=mse)
if rank == 0:
    schedule.step(x)
else:
    losses = []
    schedule.step(target=y, losses=losses)
    assert len(losses) == 4
for p, q in zip(mine.parameters(), whole[rank].parameters()):
    torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-6)
print("pipeline gradients equal one process")
dist.destroy_process_group()
