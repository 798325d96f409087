# kind: E
# ranks: 2
# outcome: ok
# says: rank 1 took part with 0 boxes
# says: step finished on both ranks
# no-diagnosis
# why: the fix for the skipping rank: run the SyncBatchNorm head on an empty batch so that every collective has its partner; pytorch#36530, pytorch#44957
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class BoxHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn, self.fc2 = nn.Linear(7, 9), nn.SyncBatchNorm(9), nn.Linear(9, 4)

    def forward(self, rois):
        return self.fc2(torch.relu(self.bn(self.fc1(rois))))


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
head = DDP(BoxHead())
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(2):
    rois = torch.randn(6, 7) if rank == 0 else torch.randn(0, 7)
    boxes = head(rois)
    loss = boxes.abs().sum() / max(len(rois), 1)  # stays attached to the graph when empty
    opt.zero_grad()
    loss.backward()
    opt.step()
print("rank", rank, "took part with", len(rois), "boxes")
done = torch.ones(1)
dist.all_reduce(done)
if done.item() == 2 and rank == 0:
    print("step finished on both ranks")
dist.destroy_process_group()
