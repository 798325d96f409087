# kind: E
# ranks: 2
# outcome: ok
# says: router equal: True, experts differ: True
# no-diagnosis
# why: expert parallelism: DDP is told to leave the experts alone, tokens travel by all_to_all, each rank owns one expert
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.nn
from torch.nn.parallel import DistributedDataParallel as DDP

class MoE(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.router = nn.Linear(4, 1)
        with torch.random.fork_rng():
            torch.manual_seed(500 + rank)
            self.expert = nn.Linear(4, 4)

    def forward(self, x):
        halves = list(x.chunk(2))
        got = [torch.empty_like(h) for h in halves]
        got = torch.distributed.nn.all_to_all(got, halves)
        done = [self.expert(h) for h in got]
        back = torch.distributed.nn.all_to_all([torch.empty_like(h) for h in done], done)
        return torch.cat(list(back)) * self.router(x).sigmoid()

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
moe = MoE(rank)
DDP._set_params_and_buffers_to_ignore_for_model(moe, [f"expert.{n}" for n, _ in moe.expert.named_parameters()])
model = DDP(moe)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(40 + rank)
for _ in range(3):
    opt.zero_grad()
    x = torch.randn(8, 4)
    (model(x) - x.flip(1)).pow(2).mean().backward()
    opt.step()

def equal(t):
    seen = [torch.empty_like(t) for _ in range(2)]
    dist.all_gather(seen, t.detach())
    return torch.equal(*seen)

print(f"router equal: {equal(moe.router.weight)}, experts differ: {not equal(moe.expert.weight)}")
dist.destroy_process_group()
