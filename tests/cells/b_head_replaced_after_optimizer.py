# kind: B
# ranks: 2
# outcome: ok
# says: new head moved: False
# diagnosis: (?=.*optimi[sz]er)(?=.*(not in|never|does not (hold|hav|know)|missing|no optimi|not (hold|given|part)|none of))
# why: the fine-tuning head replaces fc after the optimizer was built: its parameters get gradients that nobody applies; timm discussions, pytorch forum
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        return self.fc(self.body(x))

dist.init_process_group("gloo")
torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
net.fc = nn.Linear(12, 3)
ddp = DDP(net)
start = net.fc.weight.detach().clone()
torch.manual_seed(50 + dist.get_rank())
for _ in range(4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(ddp(torch.randn(8, 6)), torch.randint(3, (8,))).backward()
    optimizer.step()
print("new head moved:", not torch.equal(start, net.fc.weight))
dist.destroy_process_group()
