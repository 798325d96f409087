import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3)))
batch = torch.randn(2, 3) + dist.get_rank()
model(batch.requires_grad_()).square().sum().backward()
print("done")
dist.destroy_process_group()
