"""DDP in every mode against one process on the global batch. After common.py; 3 ranks."""
# ruff: noqa: F821 - the names of common.py

import contextlib

from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 - as learners write it
from torch.utils.checkpoint import checkpoint

MODES = {
    "plain": {},
    "gradient_as_bucket_view": {"gradient_as_bucket_view": True},
    "many small buckets": {"bucket_cap_mb": 0.0001},
    "static_graph": {"static_graph": True},
    "static_graph, bucket views": {"static_graph": True, "gradient_as_bucket_view": True},
    "find_unused_parameters": {"find_unused_parameters": True},
    "init_sync=False": {"init_sync": False},
}
data = batches()
mine = [share(x) for x in data]
reference = net()
train(reference, sgd(reference), data)
for name, options in MODES.items():
    model = DDP(net(), **options)
    train(model, sgd(model), mine)
    check(name, states(model.module.state_dict(), reference.state_dict()))

# What the constructor does for ranks that begin with different weights.
model = DDP(net(seed=1 + rank))
train(model, sgd(model), mine)
check("weights of rank 0 at the start", states(model.module.state_dict(), reference.state_dict()))

# The trainer's other tools.
model, clipped = DDP(net()), net()
for m, xs in ((model, mine), (clipped, data)):
    opt = torch.optim.Adam(m.parameters(), lr=0.05)
    norms = []
    for x in xs:
        opt.zero_grad()
        m(x).square().mean().backward()
        norms.append(nn.utils.clip_grad_norm_(m.parameters(), 0.01))
        opt.step()
    m.norms = torch.stack(norms)
check(
    "clip_grad_norm_, Adam",
    [(model.norms, clipped.norms), *states(model.module.state_dict(), clipped.state_dict())],
)

# Four microbatches a step, of which only the last is reduced.
model, accumulated, naive = DDP(net()), net(), DDP(net())
opt, ref_opt = sgd(model), sgd(accumulated)
for x in data:
    opt.zero_grad()
    ref_opt.zero_grad()
    for i in range(4):
        with model.no_sync() if i < 3 else contextlib.nullcontext():
            model(share(x) + i).square().mean().backward()
        accumulated(x + i).square().mean().backward()
    opt.step()
    ref_opt.step()
check("no_sync", states(model.module.state_dict(), accumulated.state_dict()))


class Branches(nn.Module):
    """Uses one of two branches, by the step; the third is never used."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.branches = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.head = nn.Linear(6, 2)
        self.double()

    def forward(self, x, which):
        return self.head(self.branches[which](x).tanh())


model, alone = DDP(Branches(), find_unused_parameters=True), Branches()
opt, ref_opt = sgd(model), sgd(alone)
for step, x in enumerate(data):
    for m, o, part in ((model, opt, share(x)), (alone, ref_opt, x)):
        o.zero_grad()
        m(part, step % 2).square().mean().backward()
        o.step()
check("find_unused_parameters, branches", states(model.module.state_dict(), alone.state_dict()))
unused = model.module.branches[2].weight
check("never used: no gradient", [(float(unused.grad is None), 1.0)])

# Ranks that use different branches: each gets the average of the gradients, 0 where unused.
model, alone = DDP(Branches(), find_unused_parameters=True), Branches()
model(share(data[0]), rank % 2).sum().backward()
for r, part in enumerate(data[0].tensor_split(world)):
    (alone(part, r % 2).sum() / world).backward()
wanted = {n: p.grad for n, p in alone.named_parameters() if p.grad is not None}
check(
    "find_unused_parameters, ranks differ",
    [(p.grad, wanted[n]) for n, p in model.module.named_parameters() if n in wanted],
)


class Recomputed(nn.Sequential):
    reentrant = False

    def forward(self, x):
        for layer in self:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


for reentrant, options in ((False, {}), (True, {"static_graph": True})):
    model = Recomputed(*net())
    model.reentrant = reentrant
    model = DDP(model, **options)
    train(model, sgd(model), [x.clone().requires_grad_() for x in mine])
    check(
        f"checkpointed, use_reentrant={reentrant}",
        states(model.module.state_dict(), reference.state_dict()),
    )

# Buffers: rank 0's go to all before each forward, unless that is off.
for sync in (True, False):
    model, alone = DDP(nn.BatchNorm1d(6).double(), forward_sync_buffers=sync), nn.BatchNorm1d(6)
    alone.double()
    for x in mine:
        model(x).sum().backward()
    for x in data[:-1]:
        alone(x.tensor_split(world)[0] if sync else share(x))
    alone(mine[-1])
    check(f"forward_sync_buffers={sync}", states(model.module.state_dict(), alone.state_dict()))

# Join: ranks run out of batches at different times; those left divide by all, or by who is left.
for by_initial in (True, False):
    torch.manual_seed(9)
    uneven = torch.randn(world, world, 2, 6, dtype=torch.float64)  # [rank, step, N, 6]
    model, alone = DDP(net()), net()
    opt, ref_opt = sgd(model), sgd(alone)
    with model.join(divide_by_initial_world_size=by_initial):
        for x in uneven[rank][: rank + 1]:
            opt.zero_grad()
            model(x).square().mean().backward()
            opt.step()
    for step in range(world):
        active = [r for r in range(world) if step <= r]
        ref_opt.zero_grad()
        for r in active:
            loss = alone(uneven[r][step]).square().mean()
            (loss / (world if by_initial else len(active))).backward()
        ref_opt.step()
    check(
        f"Join, divide_by_initial_world_size={by_initial}",
        states(model.module.state_dict(), alone.state_dict()),
    )

# Communication hooks: float16 on the wire rounds; bfloat16 is refused where there is no nccl.
for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
    model = DDP(net())
    model.register_comm_hook(None, hook)
    train(model, sgd(model), mine)
    check(hook.__name__, states(model.module.state_dict(), reference.state_dict()))
model = DDP(net())
refused(
    "bf16_compress_hook is refused",
    lambda: model.register_comm_hook(None, default_hooks.bf16_compress_hook),
    "TypeError: BF16 all reduce communication hook required CUDA",
)

# Half precision.
for dtype in (torch.bfloat16, torch.float16):
    model, alone = DDP(net(dtype=dtype)), net(dtype=dtype)
    train(alone, sgd(alone), data.to(dtype))
    train(model, sgd(model), [x.to(dtype) for x in mine])
    check(f"model in {dtype}", states(model.module.state_dict(), alone.state_dict()))
refused(
    "nothing to reduce is refused",
    lambda: DDP(nn.ReLU()),
    "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any parameter",
)

# The comparison itself must be able to fail: without DDP each rank follows its own batches.
model = net()
train(model, sgd(model), mine)
check("control: no DDP", states(model.state_dict(), reference.state_dict()))
dist.destroy_process_group()
