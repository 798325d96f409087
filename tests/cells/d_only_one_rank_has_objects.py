# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 1: nothing detected, skipping the box head
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all[-_ ]?gather)
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*all[-_ ]?reduce)
# why: rank 1 skips the SyncBatchNorm head when its image has no object: rank 0 waits in the layer's all_gather, rank 1 in the loss all_reduce; pytorch#44957
import torch
import torch.nn as nn
import torch.distributed as dist


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(7, 9)
        self.bn = nn.SyncBatchNorm(9)

    def forward(self, boxes):
        return torch.relu(self.bn(self.fc(boxes)))


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
head = Head()
found = torch.randn(5, 7) if rank == 0 else torch.randn(0, 7)
if len(found) > 0:
    loss = head(found).mean()
else:
    print(f"rank {rank}: nothing detected, skipping the box head", flush=True)
    loss = torch.zeros(())
total = loss.detach().clone()
dist.all_reduce(total)
print("mean loss", total.item() / 2)
dist.destroy_process_group()
