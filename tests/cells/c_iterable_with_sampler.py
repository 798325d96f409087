# kind: C
# ranks: 2
# outcome: error
# diagnosis: (?=.*IterableDataset)(?=.*sampler)(?=.*islice|part)
# why: DistributedSampler for a stream; pytorch#28743
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(8.0))
    def __len__(self):
        return 8
data = Stream()
loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data))
for x in loader:
    dist.all_reduce(x)
dist.destroy_process_group()
