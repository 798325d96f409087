"""Every collective, reduce op and dtype against what one process computes. After common.py."""
# ruff: noqa: F821 - the names of common.py

import torch.distributed.nn.functional as dist_nn
from torch.distributed import ReduceOp

NUMBERS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int8, torch.uint8,
]  # fmt: skip
REDUCTIONS = {
    "SUM": (ReduceOp.SUM, lambda parts: parts.sum(0)),
    "AVG": (ReduceOp.AVG, lambda parts: parts.sum(0) / world),
    "PRODUCT": (ReduceOp.PRODUCT, lambda parts: parts.prod(0)),
    "MIN": (ReduceOp.MIN, lambda parts: parts.amin(0)),
    "MAX": (ReduceOp.MAX, lambda parts: parts.amax(0)),
}
BITS = {
    "BAND": (ReduceOp.BAND, torch.bitwise_and),
    "BOR": (ReduceOp.BOR, torch.bitwise_or),
    "BXOR": (ReduceOp.BXOR, torch.bitwise_xor),
}
torch.manual_seed(0)
values = torch.randint(1, 4, (world, 3, 4)).double()  # exact in every dtype, also as a product

for name, (op, expected) in REDUCTIONS.items():
    pairs = []
    for dtype in NUMBERS:
        if name == "AVG" and not dtype.is_floating_point:
            continue
        x = values[rank].to(dtype, copy=True)
        dist.all_reduce(x, op)
        pairs.append((x, expected(values).to(dtype)))
        x = values[rank].to(dtype, copy=True)
        dist.reduce(x, dst=1, op=op)
        pairs += [(x, expected(values).to(dtype))] if rank == 1 else []
        out = torch.empty(1, 4, dtype=dtype)
        dist.reduce_scatter_single(out, values[rank][:world].to(dtype).contiguous(), op)
        pairs.append((out, expected(values[:, :world])[rank : rank + 1].to(dtype)))
    check(f"reductions, {name}", pairs)
bits = torch.tensor([[12, 10], [6, 3], [255, 1]])
for name, (op, apply) in BITS.items():
    pairs = []
    for dtype in (torch.int64, torch.int32, torch.uint8):
        x = bits[rank].to(dtype, copy=True)
        dist.all_reduce(x, op)
        want = bits[0]
        for other in bits[1:]:
            want = apply(want, other)
        pairs.append((x, want))
    check(f"reductions, {name}", pairs)

pairs = []
for dtype in (*NUMBERS, torch.bool, torch.complex64):
    x = values[rank].to(dtype, copy=True)
    gathered = [torch.empty_like(x) for _ in range(world)]
    dist.all_gather(gathered, x)
    sent = x.clone() if rank == 2 else torch.zeros_like(x)
    dist.broadcast(sent, src=2)
    same = all(torch.equal(a, b.to(dtype)) for a, b in zip(gathered, values, strict=True))
    pairs.append((float(same and torch.equal(sent, values[2].to(dtype))), 1.0))
check("moved unchanged in every dtype", pairs)

x = values[rank]
whole_batch = torch.empty(3 * world, 4, dtype=torch.float64)
dist.all_gather_single(whole_batch, x)
check("all_gather_single", [(whole_batch, values.flatten(0, 1))])
lists = [torch.empty(3, 4, dtype=torch.float64) for _ in range(world)] if rank == 1 else None
dist.gather(x, lists, dst=1)
check("gather", [(torch.stack(lists), values)] if rank == 1 else [])
own = torch.empty(3, 4, dtype=torch.float64)
dist.scatter(own, list(values) if rank == 2 else None, src=2)
check("scatter", [(own, values[rank])])
out = torch.empty(world, 4, dtype=torch.float64)
dist.all_to_all_single(out, x)
check("all_to_all_single", [(out, values[:, rank])])
sizes_in = [(rank + peer) % 3 for peer in range(world)]
sizes_out = [(peer + rank) % 3 for peer in range(world)]
out = torch.empty(sum(sizes_out), dtype=torch.float64)
dist.all_to_all_single(out, torch.full((sum(sizes_in),), float(rank)).double(), sizes_out, sizes_in)
want = torch.cat([torch.full((size,), float(peer)) for peer, size in enumerate(sizes_out)])
check("all_to_all_single, uneven", [(out, want)])
outs = [torch.empty(4, dtype=torch.float64) for _ in range(world)]
dist.all_to_all(outs, list(x[:world]))
check("all_to_all", [(torch.stack(outs), values[:, rank])])
outs = [torch.empty(2), torch.empty(3), torch.empty(1)]
own = torch.empty([2, 3, 1][rank])
dist.reduce_scatter(own, [torch.full((n,), float(rank + n)) for n in (2, 3, 1)])
check("reduce_scatter, uneven", [(own, torch.full_like(own, 3.0 + 3 * own.numel()))])

# Asynchronous, coalesced, in groups, not contiguous, empty, a scalar.
a, b = torch.full((5,), float(rank)), torch.full((2,), float(rank))
handles = [dist.all_reduce(t, async_op=True) for t in (a, b)]
for handle in handles:
    handle.wait()
check("async_op", [(a, torch.full((5,), 3.0)), (b, torch.full((2,), 3.0))])
some = dist.new_group([0, 2])
c = torch.tensor(float(rank + 1))
if rank != 1:
    dist.all_reduce(c, group=some)
check("group of two", [(c, 4.0 if rank != 1 else 2.0)])
d = torch.arange(12.0).view(3, 4).t() + rank
dist.all_reduce(d)
check("not contiguous", [(d, 3 * torch.arange(12.0).view(3, 4).t() + 3)])
dist.all_reduce(torch.empty(0))
dist.barrier()

# Point-to-point: a ring by pairs, tags, any source, a batch.
out = torch.empty(3, 4, dtype=torch.float64)
after, before = (rank + 1) % world, (rank - 1) % world
works = dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, out, before)]
)
for work in works:
    work.wait()
check("batch_isend_irecv", [(out, values[before])])
first, second = torch.empty(2), torch.empty(2)
if rank == 0:
    dist.send(torch.tensor([1.0, 1.0]), dst=1, tag=7)
    dist.send(torch.tensor([2.0, 2.0]), dst=1, tag=8)
if rank == 1:
    late = dist.irecv(second, src=0, tag=8)
    dist.recv(first, src=0, tag=7)
    late.wait()
check("tags", [(first, 1.0 + torch.zeros(2)), (second, 2.0 + torch.zeros(2))] if rank == 1 else [])
if rank == 0:
    froms = []
    for _ in range(2):
        got = torch.empty(1)
        froms.append((float(dist.recv(got)), got.item()))
    check("any source", [(sender, value) for sender, value in froms])
else:
    dist.send(torch.tensor([float(rank)]), dst=0)
    check("any source", [])

# Objects.
box = [None] * world
dist.all_gather_object(box, {"rank": rank, "text": "あ" * rank})
check(
    "all_gather_object", [(float(box == [{"rank": r, "text": "あ" * r} for r in range(world)]), 1)]
)
one = [{"from": 1}, "x"] if rank == 1 else [None, None]
dist.broadcast_object_list(one, src=1)
check("broadcast_object_list", [(float(one == [{"from": 1}, "x"]), 1)])
mine = [None]
dist.scatter_object_list(mine, ["a", "b", "c"] if rank == 0 else None, src=0)
check("scatter_object_list", [(float(mine == [["a", "b", "c"][rank]]), 1)])
all_of_them = [None] * world if rank == 2 else None
dist.gather_object(("r", rank), all_of_them, dst=2)
right = all_of_them == [("r", r) for r in range(world)] if rank == 2 else True
check("gather_object", [(float(right), 1)])

# Collectives that autograd differentiates.
leaf = values[rank].clone().requires_grad_()
(dist_nn.all_reduce(leaf) * (rank + 1)).sum().backward()
check("gradient through all_reduce", [(leaf.grad, torch.full((3, 4), 6.0))])
leaf = values[rank].clone().requires_grad_()
(torch.stack(dist_nn.all_gather(leaf)) * (rank + 1)).sum().backward()
check("gradient through all_gather", [(leaf.grad, torch.full((3, 4), 6.0))])

# What stock refuses on gloo, each with its own words.
eights, longs = torch.zeros(2).to(torch.float8_e4m3fn), torch.ones(2, dtype=torch.int64)
unequal = [torch.empty(1 + r) for r in range(world)]
premul = dist._make_nccl_premul_sum(2.0)
sparse, complexes = torch.eye(2).to_sparse(), torch.ones(1, dtype=torch.complex64)
for name, call, words in (
    ("float8", lambda: dist.all_reduce(eights), "Invalid scalar type"),
    ("PREMUL_SUM", lambda: dist.all_reduce(torch.ones(2), premul), "RuntimeError"),
    (
        "AVG of integers",
        lambda: dist.all_reduce(longs, ReduceOp.AVG),
        "can't be cast to the desired",
    ),
    ("bits of floats", lambda: dist.all_reduce(torch.ones(2), ReduceOp.BAND), "RuntimeError"),
    (
        "sparse MAX",
        lambda: dist.all_reduce(sparse, ReduceOp.MAX),
        "unsupported reduction operation",
    ),
    ("complex MAX", lambda: dist.all_reduce(complexes, ReduceOp.MAX), "does not support"),
    ("to oneself", lambda: dist.send(torch.ones(1), dst=rank), "ValueError"),
    ("no such rank", lambda: dist.broadcast(torch.ones(1), src=9), "invalid root rank: 9"),
    (
        "uneven all_gather",
        lambda: dist.all_gather(unequal, torch.ones(1 + rank)),
        "invalid tensor size",
    ),
    (
        "short output",
        lambda: dist.all_gather_single(torch.empty(5), torch.ones(2)),
        "invalid tensor",
    ),
    ("dtypes", lambda: dist.all_gather([torch.empty(1).double()] * world, torch.ones(1)), "dtypes"),
    ("short list", lambda: dist.reduce_scatter(torch.empty(1), [torch.ones(1)]), "world size"),
):
    refused(f"refused: {name}", call, words)
dist.destroy_process_group()
