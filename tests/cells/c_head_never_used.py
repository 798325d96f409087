# kind: C
# ranks: 2
# outcome: error
# says: step 0 done
# diagnosis: find_unused_parameters|(unused|not used|never used|did not receive|no gradient).*param|param.*(unused|not used|never used|no gradient)
# why: an auxiliary head takes no part in the loss; DDP stops at the second step; pytorch#43259
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.GRU(5, 8, batch_first=True)
        self.label = nn.Linear(8, 3)
        self.box = nn.Linear(8, 4)

    def forward(self, seq, want_box=False):
        h = self.body(seq)[0][:, -1]
        return (self.label(h), self.box(h)) if want_box else self.label(h)


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = DDP(TwoHeads())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(torch.randn(6, 7, 5)), torch.arange(6) % 3)
    loss.backward()
    opt.step()
    print("step", step, "done", flush=True)
dist.destroy_process_group()
