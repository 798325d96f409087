# kind: C
# ranks: 4
# outcome: error
# diagnosis: (?=.*broadcast)(?=.*(src|source))(?=.*(not (a member|part|in)|outside|member))(?=.*(group_src|global rank))
# why: the source of a subgroup broadcast is given as a rank inside the group, but src counts global ranks; torchrec#4601, pytorch#91760
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
evens, odds = dist.new_group([0, 2]), dist.new_group([1, 3])
group = odds if rank % 2 else evens
weights = torch.full((4,), float(rank))
dist.broadcast(weights, src=0, group=group)              # "the first of each group"
print(rank, weights.tolist())
dist.destroy_process_group()
