# kind: E
# ranks: 2
# outcome: ok
# says: means equal: True
# no-diagnosis
# why: a layer that is converted itself is assigned back; the plain twin runs too, as a reference on all data; pytorch#39646
import copy
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
plain = nn.BatchNorm1d(3)
class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return self.norm(x)

net = Net(copy.deepcopy(plain))
net.norm = nn.SyncBatchNorm.convert_sync_batchnorm(net.norm)
data = torch.randn(world, 5, 3)
plain(data.flatten(0, 1))
net(data[rank])
print("means equal:", torch.allclose(net.norm.running_mean, plain.running_mean))
dist.destroy_process_group()
