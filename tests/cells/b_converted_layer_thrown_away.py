# kind: B
# ranks: 2
# outcome: ok
# says: BatchNorm1d; running means rank 0 0\.0500, rank 1 0\.1500
# diagnosis: convert_sync_batchnorm.*(return|result|assign|discard|ignored|new)|(return|result).*convert_sync_batchnorm
# why: converting a layer itself returns a new module; the return value is dropped and the model keeps per-rank BatchNorm; pytorch#39646
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.score = nn.Linear(2, 1)

    def forward(self, x):
        return self.score(self.norm(x))


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
detector = Detector()
nn.SyncBatchNorm.convert_sync_batchnorm(detector.norm)  # meant to synchronise the statistics
model = DDP(detector)
x = torch.tensor([[0.0, 1.0], [1.0, 0.0]]) + rank
model(x).sum().backward()
mine = model.module.norm.running_mean[:1].clone()
means = [torch.empty(1) for _ in range(2)]
dist.all_gather(means, mine)
print(
    f"{type(model.module.norm).__name__}; running means rank 0 {means[0].item():.4f}, rank 1 {means[1].item():.4f}"
)
dist.destroy_process_group()
