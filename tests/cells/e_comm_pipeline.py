# kind: E
# ranks: 3
# outcome: ok
# no-diagnosis
# why: send and recv of a pipeline are called on different lines by design; NVIDIA/nccl#479
import torch, torch.distributed as dist
dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
for mb in range(3):
    h = torch.randn(4, 8) if r == 0 else torch.empty(4, 8)
    if r > 0:
        dist.recv(h, src=r - 1)
    h = h * 2
    if r < n - 1:
        dist.send(h, dst=r + 1)
for mb in range(3):
    g = torch.ones(4, 8)
    if r < n - 1:
        dist.recv(g, src=r + 1)
    if r > 0:
        dist.send(g, dst=r - 1)
loss = torch.zeros(1)
if r == n - 1:
    loss += 3
dist.broadcast(loss, src=n - 1)
dist.destroy_process_group()
