# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 1 finished after 3 batches
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all[-_ ]?reduce)
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*(barrier|finished|ran out|exhaust|fewer|\bless|uneven|unequal|\bJoin\b|different number|number of (batch|step|iteration)))
# why: 14 samples split 8/6 give rank 0 one batch more: its gradient all_reduce has no partner; pytorch#38174
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    everything = TensorDataset(torch.randn(14, 3), torch.randn(14, 1))
    share = Subset(everything, range(0, 8) if rank == 0 else range(8, 14))
    model = DDP(nn.Linear(3, 1))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    batches = 0
    for x, y in DataLoader(share, batch_size=2):
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
        batches += 1
    print("rank", rank, "finished after", batches, "batches", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
