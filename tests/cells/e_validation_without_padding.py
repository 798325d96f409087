# kind: E
# ranks: 2
# outcome: ok
# says: counted 21 of 21 samples, accuracy \d
# no-diagnosis
# why: validation strides over the data without padding, and the duplicates of a padded gather are cut off; pytorch#25162
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(21, 4), torch.randint(2, (21,)))
sampler = DistributedSampler(data, shuffle=True, drop_last=True)
for epoch in range(2):
    sampler.set_epoch(epoch)
    model.train()
    for x, y in DataLoader(data, batch_size=5, sampler=sampler):
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
    model.eval()
    counts = torch.zeros(2)
    with torch.inference_mode():
        for x, y in DataLoader(Subset(data, range(rank, len(data), world)), batch_size=4):
            counts += torch.tensor([(model.module(x).argmax(1) == y).sum(), len(y)])
    dist.all_reduce(counts)
    padded = DistributedSampler(data, shuffle=False)
    mine = torch.cat([model.module(x).argmax(1).detach() for x, _ in DataLoader(data, batch_size=4, sampler=padded)])
    parts = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(parts, mine)
    whole = torch.stack(parts, 1).flatten()[: len(data)]
print(f"counted {int(counts[1])} of {len(whole)} samples, accuracy {counts[0] / counts[1]:.2f}")
dist.destroy_process_group()
