# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*(unused|not used|never used|no gradient|find_unused_parameters|skips|not take part))
# why: rank 1 has no masks, so its mask head gets no gradient and its bucket never becomes ready: rank 0 waits in the gradient all_reduce; pytorch#43259, ultralytics#24413
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.boxes, self.masks = nn.Linear(4, 6), nn.Linear(6, 4), nn.Linear(6, 9)

    def forward(self, x, has_masks):
        h = torch.relu(self.body(x))
        loss = self.boxes(h).pow(2).mean()
        return loss + self.masks(h).pow(2).mean() if has_masks else loss

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(Detector())
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(5, 4), has_masks=(rank == 0))
loss.backward()
opt.step()
total = loss.detach().clone()
dist.all_reduce(total)
print("loss", total.item() / 2)
dist.destroy_process_group()
