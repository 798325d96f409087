"""FSDP1 in every strategy and mode against one process. After common.py; 4 ranks."""
# ruff: noqa: F821 - the names of common.py

import contextlib
import copy

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 - as learners do
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

WRAP = ModuleWrapPolicy({nn.Linear})
STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"]
data = batches()
mine = [share(x) for x in data]
reference = net()
train(reference, torch.optim.Adam(reference.parameters(), lr=0.05), data)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))


def shard(model=None, strategy="FULL_SHARD", **options):
    return FSDP(
        model or net(),
        sharding_strategy=ShardingStrategy[strategy],
        auto_wrap_policy=WRAP,
        device_mesh=mesh if "HYBRID" in strategy else None,
        **options,
    )


def full(model):
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig()):
        return model.state_dict()


for strategy in STRATEGIES:
    for original in (True, False):
        model = shard(strategy=strategy, use_orig_params=original)
        train(model, torch.optim.Adam(model.parameters(), lr=0.05), mine)
        check(
            f"{strategy}, use_orig_params={original}", states(full(model), reference.state_dict())
        )

for name, options in {
    "forward_prefetch, BACKWARD_POST": {
        "forward_prefetch": True,
        "backward_prefetch": BackwardPrefetch.BACKWARD_POST,
    },
    "no prefetch, no limit": {"backward_prefetch": None, "limit_all_gathers": False},
    "two groups of two": {"process_group": dist.new_subgroups(group_size=2)[0]},
}.items():
    model = shard(**options)
    if name == "two groups of two":  # no traffic between the groups: each trains on its own half
        alone = net()
        halves = [x.tensor_split(2)[rank // 2] for x in data]
        train(alone, torch.optim.Adam(alone.parameters(), lr=0.05), halves)
    else:
        alone = reference
    train(model, torch.optim.Adam(model.parameters(), lr=0.05), mine)
    check(name, states(full(model), alone.state_dict()))

model = shard(net(seed=1 + rank), sync_module_states=True)
train(model, torch.optim.Adam(model.parameters(), lr=0.05), mine)
check("sync_module_states", states(full(model), reference.state_dict()))

# Clipping: FSDP's own method knows the whole norm, and takes it in float32.
for strategy in ("FULL_SHARD", "NO_SHARD", "HYBRID_SHARD"):
    for order in (2.0, math.inf):
        alone = net(dtype=torch.float32)
        model = shard(copy.deepcopy(alone), strategy=strategy, use_orig_params=True)
        norms = []
        for m, parts in ((model, mine), (alone, data)):
            m(parts[0].float()).square().mean().backward()
            clip = m.clip_grad_norm_ if m is model else nn.utils.clip_grad_norm_
            args = () if m is model else (list(m.parameters()),)
            norms.append(clip(*args, 0.01, order))
            torch.optim.SGD(m.parameters(), lr=50.0).step()
        check(
            f"clip_grad_norm_, {strategy}, norm {order}",
            [tuple(norms), *states(full(model), alone.state_dict())],
        )

# Accumulation: with no_sync each rank keeps its own whole gradient until the last microbatch.
for accumulate in ("no_sync", "synced each time"):
    model, alone = shard(use_orig_params=True), net()
    opt, ref_opt = sgd(model), sgd(alone)
    for x in data:
        opt.zero_grad()
        ref_opt.zero_grad()
        for i in range(3):
            quiet = accumulate == "no_sync" and i < 2
            with model.no_sync() if quiet else contextlib.nullcontext():
                model(share(x) + i).square().mean().backward()
            alone(x + i).square().mean().backward()
        opt.step()
        ref_opt.step()
    check(f"accumulation, {accumulate}", states(full(model), alone.state_dict()))

# Mixed precision: compute in bfloat16, keep and reduce in float32.
alone = net(dtype=torch.float32)
train(alone, sgd(alone), data.float())
for name, policy in {
    "parameters and reduction bfloat16": MixedPrecision(
        param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16
    ),
    "parameters float16, reduction float32": MixedPrecision(
        param_dtype=torch.float16, reduce_dtype=torch.float32
    ),
}.items():
    seen = []
    inner = net(dtype=torch.float32)
    inner[0].register_forward_hook(
        lambda m, args, out, to=seen: to.append((args[0].dtype, out.dtype))
    )
    model = shard(inner, mixed_precision=policy)
    train(model, sgd(model), [x.float() for x in mine], lambda out: out.float().square().mean())
    pairs = states(full(model), alone.state_dict())
    check(f"mixed precision, {name}", pairs)
    kept = all(p.dtype == torch.float32 for p in model.parameters())
    computed = {dtype for dtypes in seen for dtype in dtypes} == {policy.param_dtype}
    check(f"mixed precision, {name}: dtypes", [(float(kept and computed), 1.0)])

# A state dict of every type, taken from one model, goes into another and trains on alike.
for kind, config, optim_config in (
    (StateDictType.FULL_STATE_DICT, FullStateDictConfig, FullOptimStateDictConfig),
    (StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig, ShardedOptimStateDictConfig),
    (StateDictType.LOCAL_STATE_DICT, LocalStateDictConfig, None),
):
    variants = [("FULL_SHARD", True), ("HYBRID_SHARD", True), ("FULL_SHARD", False)]
    for strategy, original in variants if optim_config else variants[2:]:
        model = shard(strategy=strategy, use_orig_params=original)
        opt = torch.optim.Adam(model.parameters(), lr=0.05)
        train(model, opt, mine[:2])
        again = shard(net(seed=77), strategy=strategy, use_orig_params=original)
        opt2 = torch.optim.Adam(again.parameters(), lr=0.05)
        for m in (model, again):
            FSDP.set_state_dict_type(m, kind, config(), optim_config and optim_config())
        again.load_state_dict(model.state_dict())
        want = full(model)
        if optim_config:
            saved = FSDP.optim_state_dict(model, opt)
            opt2.load_state_dict(FSDP.optim_state_dict_to_load(again, opt2, saved))
            train(again, opt2, mine[2:])
            want = reference.state_dict()
        check(f"{kind.name}, {strategy}, use_orig_params={original}", states(full(again), want))
model = shard(use_orig_params=True)
want = full(model)

rank0 = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, rank0):
    only = model.state_dict()
check("rank0_only, offload_to_cpu", states(only, want) if rank == 0 else [(float(len(only)), 0.0)])
with FSDP.summon_full_params(model, writeback=False, rank0_only=True, offload_to_cpu=True):
    seen = {n.replace("_fsdp_wrapped_module.", ""): p for n, p in model.named_parameters()}
    check("summon_full_params, offload_to_cpu", states(seen, want) if rank == 0 else [])

with FSDP.summon_full_params(model), torch.no_grad():
    for p in model.parameters():
        p.mul_(2)
check("summon_full_params writes back", [(v, 2 * want[k]) for k, v in full(model).items()])

# What FSDP1 keeps out of its flat parameters stays an ordinary parameter.
model = net()
model = shard(model, ignored_modules=[model[4]], use_orig_params=True)
train(model, sgd(model), mine[:1])
dist.all_reduce(model.module[4].weight.grad, dist.ReduceOp.AVG)
alone = net()
alone(data[0]).square().mean().backward()
check("ignored_modules", [(model.module[4].weight.grad, alone[4].weight.grad)])

model = net()
train(model, torch.optim.Adam(model.parameters(), lr=0.05), mine)
check("control: not sharded, not synced", states(model.state_dict(), reference.state_dict()))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(self.embedding(x))


def tied(**options):
    policy = ModuleWrapPolicy({nn.Embedding, nn.Linear})
    return FSDP(Tied(), auto_wrap_policy=policy, **options)(torch.arange(5)).sum().backward()


def offloaded():
    return shard(cpu_offload=CPUOffload(offload_params=True))(mine[0])


refused(
    "CPUOffload, which pins memory", offloaded, "RuntimeError: Cannot access accelerator device"
)
refused("tied weights, use_orig_params=True", lambda: tied(use_orig_params=True), "size mismatch")
refused(
    "a CUDA device",
    lambda: FSDP(net(), device_id=torch.device("cuda:0")),
    "Torch not compiled with CUDA",
)
refused(
    "HYBRID_SHARD without groups",
    lambda: FSDP(net(), sharding_strategy=ShardingStrategy.HYBRID_SHARD),
    "requires explicit specification of process group or device_mesh",
)
dist.destroy_process_group()
