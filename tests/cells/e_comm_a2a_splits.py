# kind: E
# ranks: 2
# outcome: ok
# no-diagnosis
# why: all_to_all_single with unequal splits; pytorch#106164
import torch, torch.distributed as dist
dist.init_process_group("gloo")
r = dist.get_rank()
x = torch.ones(3 if r == 0 else 5)
ins = [1, 2] if r == 0 else [3, 2]
outs = [1, 3] if r == 0 else [2, 2]
y = torch.empty(sum(outs))
dist.all_to_all_single(y, x, outs, ins)
dist.destroy_process_group()
