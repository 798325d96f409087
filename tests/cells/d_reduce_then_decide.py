# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 1 saves
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*all_gather)(?=.*line 21)(?=.*loss < best)
# why: reduce leaves the mean loss on rank 0 only, so the ranks disagree whether to save; pytorch#77562
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = fully_shard(nn.Linear(4, 4))
best = 1.5
loss = torch.tensor(1.0)
dist.reduce(loss, dst=0)                                # 2 on rank 0, 1 elsewhere
if loss < best:
    print("rank", rank, "saves", flush=True)
    state = {k: v.full_tensor() for k, v in model.state_dict().items()}
    torch.save(state, "best.pt")
model(torch.randn(2, 4)).sum().backward()
dist.destroy_process_group()
