# kind: D
# ranks: 2
# outcome: deadlock|error
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_reduce)(?=.*line 17)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*while)(?=.*together|all_reduce|condition)
# why: a while loop ends on a residual that each rank computes from its own rows, so the ranks make different numbers of all_reduces; deepspeed#2021
#
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
rows = torch.eye(4) * (rank + 1)
vector, change = torch.ones(4), 1.0
steps = 0
while change > 0.3 + 0.2 * rank:
    update = rows @ vector
    dist.all_reduce(update)
    update /= update.norm()
    change = 0.8 * change
    vector, steps = update, steps + 1
parts = [torch.empty(4) for _ in range(2)]
dist.all_gather(parts, vector)
print("converged after", steps)
dist.destroy_process_group()
