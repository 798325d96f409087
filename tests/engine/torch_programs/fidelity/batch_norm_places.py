"""SyncBatchNorm where people put it: wrapped, compiled, checkpointed. After common.py; 4 ranks."""
# ruff: noqa: F821 - the names of common.py

from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 - as learners do
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    """A convolutional block that may be recomputed in backward."""

    def __init__(self, dtype=torch.float64, recompute=None):
        super().__init__()
        torch.manual_seed(3)
        self.recompute = recompute
        self.block = nn.Sequential(nn.Conv2d(2, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU())
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 3)
        self.to(dtype)

    def forward(self, x):
        if self.recompute is None:
            x = self.block(x)
        else:
            x = checkpoint(self.block, x, use_reentrant=self.recompute)
        return self.head(self.norm(x.mean((2, 3))))


def images(per_rank=2, dtype=torch.float64):
    torch.manual_seed(0)
    return (torch.randn(3, world * per_rank, 2, 5, 5) * 2 + 1).to(dtype).requires_grad_()


def synced(**options):
    return nn.SyncBatchNorm.convert_sync_batchnorm(Net(**options))


def compare(name, model, *, reference=None, plain=lambda model: model, dtype=torch.float64, to=0.1):
    """Train both three steps; plain(model) is what has the parameters under their own names."""
    reference = reference or Net(dtype=dtype)
    data = images(dtype=dtype)
    train(reference, sgd(reference, to), data)
    train(model, sgd(model, to), [share(x) for x in data])
    check(name, states(plain(model).state_dict(), reference.state_dict()))


compare("DDP", DDP(synced()), plain=lambda m: m.module)
compare(
    "DDP, bucket views, static graph, no buffer broadcast",
    DDP(synced(), gradient_as_bucket_view=True, static_graph=True, forward_sync_buffers=False),
    plain=lambda m: m.module,
)
for reentrant in (False, True):
    # Recomputing passes every batch twice, so the running statistics of both move twice.
    compare(
        f"DDP, checkpointed, use_reentrant={reentrant}",
        DDP(synced(recompute=reentrant)),
        reference=Net(recompute=reentrant),
        plain=lambda m: m.module,
    )
compare("DDP, compiled", torch.compile(DDP(synced()), backend="eager"), plain=lambda m: m.module)
compiled = synced()
compiled.block.compile(backend="eager")
compare("block compiled, then DDP", DDP(compiled), plain=lambda m: m.module)

for strategy in ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"):
    for original in (True, False):
        model = synced()
        model.block = FSDP(
            model.block, sharding_strategy=ShardingStrategy[strategy], use_orig_params=original
        )
        wrapped = FSDP(
            model, sharding_strategy=ShardingStrategy[strategy], use_orig_params=original
        )
        compare(f"FSDP1 {strategy}, use_orig_params={original}", wrapped)
for reshard in (True, False):
    model = synced()
    fully_shard(model.block, reshard_after_forward=reshard)
    compare(f"FSDP2, reshard_after_forward={reshard}", fully_shard(model))
model = synced(recompute=False)
fully_shard(model.block)
compare("FSDP2, checkpointed", fully_shard(model), reference=Net(recompute=False))

# One gradient per rank: what each layer's parameters get sums to the reference's, however grouped.
pairs_of_ranks, _ = dist.new_subgroups(group_size=2)
model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(4).double(), pairs_of_ranks)
reference = nn.BatchNorm2d(4).double()
torch.manual_seed(7)
x = torch.randn(world // 2, 4, 4, 3, 3, dtype=torch.float64)[rank // 2].requires_grad_()
part = x.detach()[2 * (rank % 2) : 2 * (rank % 2) + 2].requires_grad_()
expected, out = reference(x), model(part)
expected.pow(3).sum().backward()
out.pow(3).sum().backward()
dist.all_reduce(model.weight.grad, group=pairs_of_ranks)
here = slice(2 * (rank % 2), 2 * (rank % 2) + 2)
check(
    "process group of two ranks",
    [
        (out, expected[here]),
        (part.grad, x.grad[here]),
        (model.weight.grad, reference.weight.grad),
        *states(model.state_dict(), reference.state_dict()),
    ],
)

# Half precision by autocast: the convolution gives bfloat16, the statistics stay float32.
torch.manual_seed(5)
data = images(dtype=torch.float32)


def cast(model):
    def forward(x):
        with torch.autocast("cpu", torch.bfloat16):
            out = model(x)
        return out.float()

    return forward


reference, model = Net(dtype=torch.float32), DDP(synced(dtype=torch.float32))
for trained, xs in ((reference, data), (model, [share(x) for x in data])):
    train(cast(trained), sgd(trained, 0.1), xs)
check("DDP, autocast to bfloat16", states(model.module.state_dict(), reference.state_dict()))

# Evaluation, frozen layers and inputs without a gradient need no backward and no other rank.
model, reference = nn.SyncBatchNorm(4).double(), nn.BatchNorm2d(4).double()
for layer in (model, reference):
    layer.requires_grad_(False)
x = torch.randn(world * 2, 4, 3, 3, generator=torch.Generator().manual_seed(1)).double()
check("frozen, no gradient at all", [(model(share(x)), share(reference(x)))])
with torch.no_grad():
    check("no_grad", [(model(share(x)), share(reference(x)))])
with torch.inference_mode():
    check("inference_mode", [(model(share(x)), share(reference(x)))])
model.eval(), reference.eval()
if rank == 0:
    alone = model(x)
check("eval on one rank only", [(alone, reference(x))] if rank == 0 else [])
check("running statistics of those", states(model.state_dict(), reference.state_dict()))

# Weights that learn, an input that does not: no all_reduce in backward.
model, reference = nn.SyncBatchNorm(4).double(), nn.BatchNorm2d(4).double()
reference(x).pow(3).sum().backward()
model(share(x)).pow(3).sum().backward()
for p in model.parameters():
    dist.all_reduce(p.grad)
check(
    "input without gradient",
    [(p.grad, q.grad) for p, q in zip(model.parameters(), reference.parameters(), strict=True)],
)

# What stock SyncBatchNorm refuses: on CUDA, precisions that do not fit; anywhere, the rest.
REFUSALS = (
    ("float64 input, float32 layer", {}, torch.randn(4, 3).double(), "found Double"),
    ("float32 input, float64 layer", {"dtype": torch.float64}, torch.randn(4, 3), "Double"),
    ("float32 input, float16 weight", {"dtype": torch.float16}, torch.randn(4, 3), "found Half"),
    ("integers", {}, torch.ones(4, 3, dtype=torch.int64), "not implemented for"),
    ("other channels", {}, torch.randn(4, 5), "should contain 5 elements not 3"),
    ("no batch dimension", {}, torch.randn(3), "expected at least 2D input (got 1D input)"),
)
for name, options, x, words in REFUSALS:
    refused(f"refused: {name}", lambda x=x, o=options: nn.SyncBatchNorm(3, **o)(x), words)
half = nn.SyncBatchNorm(3, dtype=torch.float16)
check(
    "half layer, half input", [(float(half(torch.randn(4, 3).half()).dtype == torch.float16), 1.0)]
)


def second_order(layer):
    x = torch.randn(4, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    grad.square().sum().backward()


for name, layer in (("bare", nn.SyncBatchNorm(3)), ("in DDP", DDP(nn.SyncBatchNorm(3)))):
    refused(
        f"refused: double backward, {name}",
        lambda layer=layer: second_order(layer),
        "derivative for aten::batch_norm_backward_elemt is not implemented",
    )
refused(
    "refused: functorch",
    lambda: torch.func.grad(lambda x: nn.SyncBatchNorm(3)(x).sum())(torch.randn(4, 3)),
    "must override the setup_context",
)
dist.destroy_process_group()
