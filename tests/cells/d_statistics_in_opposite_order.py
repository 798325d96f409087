# kind: D
# ranks: 2
# outcome: ok
# says: right 10.0 wrong 10.0
# diagnosis: (?=.*order)(?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*line 14)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*line 17)
# why: the two arms of a branch reduce the same two tensors in opposite order; the sums land in the wrong tensor; pytorch#77562
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
right, wrong = torch.tensor([8.0]), torch.tensor([2.0])
if rank == 0:
    dist.all_reduce(right)
    dist.all_reduce(wrong)
else:
    dist.all_reduce(wrong)
    dist.all_reduce(right)
print("rank", rank, "right", right.item(), "wrong", wrong.item())
dist.destroy_process_group()
