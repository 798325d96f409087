# kind: F
# ranks: 2
# outcome: ok
# says: Finished running basic DDP example on rank 1
# no-diagnosis
# why: the basic DDP tutorial as pasted, with nccl, device_ids and output_device; pytorch/tutorials#1375
import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP

class ToyModel(nn.Module):
    def __init__(self):
        super(ToyModel, self).__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))

def demo_basic():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    local_rank = int(os.environ["LOCAL_RANK"])
    model = ToyModel()
    ddp_model = DDP(model, device_ids=[local_rank], output_device=local_rank)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    optimizer.zero_grad()
    outputs = ddp_model(torch.randn(20, 10))
    labels = torch.randn(20, 5)
    loss_fn(outputs, labels).backward()
    optimizer.step()
    dist.barrier()
    print(f"Finished running basic DDP example on rank {rank}.")
    dist.destroy_process_group()

if __name__ == "__main__":
    demo_basic()
