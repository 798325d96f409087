# kind: E
# ranks: 2
# outcome: ok
# no-diagnosis
# why: a rank without data reduces a zero on another line; pytorch#36530
import torch, torch.distributed as dist
dist.init_process_group("gloo")
r = dist.get_rank()
for step in range(4):
    if (step + r) % 2:
        total = torch.zeros(1)
        dist.all_reduce(total)
        continue
    loss = torch.ones(1)
    dist.all_reduce(loss)
dist.destroy_process_group()
