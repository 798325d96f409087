# kind: B
# ranks: 2
# outcome: ok
# says: gates apart by 0\.0*[1-9]
# diagnosis: (?=.*(ignor|not (reduc|averag|shard)|local|drift|differ))(?=.*(gradient|parameter|weight))
# why: ignored_params are outside fully_shard: nobody reduces their gradients, yet the optimizer steps them; pytorch fully_shard ignored_params reports
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.ones(7))
        self.proj = nn.Linear(7, 5)

    def forward(self, x):
        return self.proj(x * self.gate.sigmoid())

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    model = Gated()
    fully_shard(model, ignored_params={model.gate})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, foreach=False)
    torch.manual_seed(12 + dist.get_rank())
    for step in range(4):
        x = torch.randn(8, 7)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    gates = [torch.empty(7) for _ in range(2)]
    dist.all_gather(gates, model.gate.detach())
    print(f"gates apart by {(gates[0] - gates[1]).abs().max().item():.4f}")
    dist.destroy_process_group()

main()
