# kind: E
# ranks: 2
# outcome: ok
# says: still tied: True
# no-diagnosis
# why: the modules that share a weight stay in one FSDP1 unit, the middle layer is a unit of its own; mosaicml/examples#11
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.mid, self.out = nn.Embedding(12, 6), nn.Linear(6, 6), nn.Linear(6, 12, bias=False)
        self.out.weight = self.tok.weight

    def forward(self, ids):
        return self.out(torch.relu(self.mid(self.tok(ids))))

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
cpu = torch.device("cpu")
lm = LM()
lm.mid = FSDP(lm.mid, device_id=cpu)
lm = FSDP(lm, device_id=cpu)
opt = torch.optim.SGD(lm.parameters(), lr=0.5)
torch.manual_seed(rank)
for step in range(2):
    ids = torch.randint(12, (4, 5))
    nn.functional.cross_entropy(lm(ids).flatten(0, 1), ids.flatten()).backward()
    opt.step()
    opt.zero_grad()
with FSDP.summon_full_params(lm):
    print("still tied:", torch.equal(lm.tok.weight, lm.out.weight))
dist.destroy_process_group()
