# kind: A
# ranks: 2
# outcome: ok
# says: shared block, re-run activations and static graph: gradients equal
# no-diagnosis
# why: one block used three times under reentrant checkpointing with static_graph=True, gradients equal the run without DDP; pytorch#79171, localrf#25
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.enter, self.block, self.leave = nn.Linear(3, 6), nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, x):
        h = self.enter(x)
        for _ in range(3):
            h = checkpoint(lambda t: torch.tanh(self.block(t)), h, use_reentrant=True)
        return self.leave(h)

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
data = torch.randn(3, 6, 3)
alone, ddp = Recurrent(), DDP(Recurrent(), static_graph=True, gradient_as_bucket_view=True)
for x in data:
    for net, rows in ((alone, x), (ddp, x[rank::2])):
        net.zero_grad()
        net(rows).square().mean().backward()
    for p, q in zip(ddp.module.parameters(), alone.parameters()):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-6)
print("shared block, re-run activations and static graph: gradients equal")
dist.destroy_process_group()
