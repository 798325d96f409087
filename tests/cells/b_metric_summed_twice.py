# kind: B
# ranks: 2
# outcome: ok
# says: accuracy [1-9]\.\d+
# diagnosis: (?=.*(same|one|alias|twice|again|already))(?=.*(tensor|all_reduce))(?=.*(reduc|summ))
# why: two dictionary entries hold one tensor and the loop all-reduces it once per entry; speculators#759
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
opt = torch.optim.Adam(model.parameters(), lr=0.05)
torch.manual_seed(rank + 3)
for step in range(6):
    x = torch.randn(16, 4)
    y = (x.sum(1) > 0).long()
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    hits = (logits.argmax(1) == y).sum().float()
    metrics = {"full_sum": hits, "cond_sum": hits, "total": torch.tensor(float(len(y)))}
    for value in metrics.values():
        dist.all_reduce(value)
print(f"accuracy {(metrics['full_sum'] / metrics['total']).item():.3f}")
dist.destroy_process_group()
