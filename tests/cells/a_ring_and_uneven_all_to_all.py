# kind: A
# ranks: 4
# outcome: ok
# says: ring sum 6; tokens returned in order
# no-diagnosis
# why: batch_isend_irecv around a ring, and MoE dispatch and return by all_to_all_single with counts that were exchanged first; NVIDIA/nccl#479
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
block = total = torch.full((3,), float(rank))
for _ in range(world - 1):
    incoming = torch.empty(3)
    ops = [dist.P2POp(dist.isend, block, (rank + 1) % world), dist.P2POp(dist.irecv, incoming, (rank - 1) % world)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    block, total = incoming, total + incoming
assert total.tolist() == [6.0] * 3

torch.manual_seed(rank)
tokens = torch.randn(5 + rank, 2)
expert = torch.randint(0, world, (len(tokens),))
order = expert.argsort(stable=True)
send = torch.bincount(expert, minlength=world)
recv = torch.empty_like(send)
dist.all_to_all_single(recv, send)
send, recv = send.tolist(), recv.tolist()
held = torch.empty(sum(recv), 2)
dist.all_to_all_single(held, tokens[order].contiguous(), recv, send)
held = held * 10 + rank
back = torch.empty_like(tokens)
dist.all_to_all_single(back, held, send, recv)
restored = torch.empty_like(tokens)
restored[order] = back
torch.testing.assert_close(restored, tokens * 10 + expert[:, None])
print(f"ring sum {total[0]:.0f}; tokens returned in order")
dist.destroy_process_group()
