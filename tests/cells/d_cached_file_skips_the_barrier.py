# kind: D
# ranks: 3
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*barrier)(?=.*line 16)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*line 13)(?=.*exists)
# why: "rank 0 first": the others wait at a barrier that rank 0 never reaches, as it returns early when the file is cached; transformers#23034
#
import os
import torch
import torch.distributed as dist

def prepare(path):
    rank = dist.get_rank()
    if rank == 0 and os.path.exists(path):
        return torch.load(path)
    if rank != 0:
        dist.barrier()                      # let rank 0 go first
    else:
        torch.save(torch.arange(6), path)
        dist.barrier()
    return torch.load(path)

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    torch.save(torch.arange(6), "tokens.pt")
tokens = prepare("tokens.pt")
seed = torch.tensor([17 * dist.get_rank()])
dist.broadcast(seed, src=0)
print("tokens", tokens.sum().item(), "seed", seed.item())
dist.destroy_process_group()
