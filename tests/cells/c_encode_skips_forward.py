# kind: C
# ranks: 2
# outcome: error
# diagnosis: register_fsdp_forward_method|(?=.*(encode|method))(?=.*(forward|hook|gather|shard))
# why: calling model.encode() instead of forward() on a fully_shard model: parameters are still sharded DTensors; pytorch#109385, pytorch#153354
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(20, 4)
        self.up = nn.Linear(4, 20)

    def encode(self, x):
        return torch.relu(self.down(x))

    def forward(self, x):
        return self.up(self.encode(x))


dist.init_process_group("gloo")
torch.manual_seed(0)
model = AutoEncoder()
fully_shard(model)
opt = torch.optim.Adam(model.parameters())
data = torch.randn(32, 20)
((model(data) - data) ** 2).mean().backward()
opt.step()
opt.zero_grad()
model.reshard()
codes = model.encode(data)
print("codes", codes.shape)
dist.destroy_process_group()
