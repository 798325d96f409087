# kind: E
# ranks: 3
# outcome: ok
# no-diagnosis
# why: one rank after the other passes a pair of barriers; pytorch#77562
import contextlib, torch, torch.distributed as dist
@contextlib.contextmanager
def first(k):
    if dist.get_rank() != k:
        dist.barrier()
    yield
    if dist.get_rank() == k:
        dist.barrier()
dist.init_process_group("gloo")
for k in range(3):
    with first(k):
        print("rank", dist.get_rank())
dist.destroy_process_group()
