"""fully_shard in every mode, its state dicts and checkpoints. After common.py; 4 ranks."""
# ruff: noqa: F821 - the names of common.py

import copy
from pathlib import Path

import torch.distributed.checkpoint as dcp
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
)
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 - as learners do
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817

data = batches()
mine = [share(x) for x in data]
reference = net()
train(reference, torch.optim.Adam(reference.parameters(), lr=0.05), data)
meshes = {
    "1-d": init_device_mesh("cpu", (4,)),
    "HSDP": init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")),
}


def shard(model=None, mesh="1-d", **options):
    model = model or net()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=meshes[mesh], **options)
    return fully_shard(model, mesh=meshes[mesh], **options)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.05)


for mesh in meshes:
    for reshard in (True, False, 2):
        if mesh == "HSDP" and reshard == 2:
            continue  # an int means "to a smaller world", and HSDP's is 2 already
        model = shard(mesh=mesh, reshard_after_forward=reshard)
        train(model, adam(model), mine)
        check(
            f"{mesh}, reshard_after_forward={reshard}",
            states(model.state_dict(), reference.state_dict()),
        )

model = shard(offload_policy=CPUOffloadPolicy(pin_memory=False))
train(model, adam(model), mine)
check("CPUOffloadPolicy", states(model.state_dict(), reference.state_dict()))

# On meta first, then in memory with the weights of one process.
with torch.device("meta"):
    model = net()
model = shard(model)
model.to_empty(device="cpu")
set_model_state_dict(model, net().state_dict(), options=StateDictOptions(full_state_dict=True))
train(model, adam(model), mine)
check("from the meta device", states(model.state_dict(), reference.state_dict()))

model = net()
apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.Linear))
for layer in model:
    if not isinstance(layer, nn.Tanh):
        fully_shard(layer)
fully_shard(model)
train(model, adam(model), mine)
got = {k.replace("_checkpoint_wrapped_module.", ""): v for k, v in model.state_dict().items()}
check("activation checkpointing", states(got, reference.state_dict()))

model = shard()
compiled = torch.compile(model, backend="eager")
train(compiled, adam(model), mine)
check("compiled", states(model.state_dict(), reference.state_dict()))

# Accumulation, with and without a reduction for each microbatch.
for quiet in (True, False):
    model, alone = shard(), net()
    opt, ref_opt = adam(model), adam(alone)
    for x in data:
        opt.zero_grad()
        ref_opt.zero_grad()
        for i in range(3):
            model.set_requires_gradient_sync(not quiet or i == 2)
            model.set_is_last_backward(i == 2)
            model(share(x) + i).square().mean().backward()
            alone(x + i).square().mean().backward()
        opt.step()
        ref_opt.step()
    check(f"accumulation, reduced once={quiet}", states(model.state_dict(), alone.state_dict()))

# A smaller last batch on some ranks: weighted by hand as the whole batch weighs it.
model, alone = shard(), net()
for unit in (model[0], model[2], model[4], model):
    unit.set_gradient_divide_factor(1.0)
uneven = data[0][: 2 * world - 3]
part = uneven.tensor_split(world)[rank]
(model(part).square().sum() / (uneven.shape[0] * 5)).backward()
alone(uneven).square().mean().backward()
check(
    "set_gradient_divide_factor",
    [(p.grad, q.grad) for p, q in zip(model.parameters(), alone.parameters(), strict=True)],
)

for order in (2.0, 1.0):
    model, alone = shard(), net()
    norms = []
    for m, parts in ((model, mine), (alone, data)):
        m(parts[0]).square().mean().backward()
        norms.append(nn.utils.clip_grad_norm_(m.parameters(), 0.01, order))
        torch.optim.SGD(m.parameters(), lr=50.0).step()
    check(
        f"clip_grad_norm_, norm {order}",
        [tuple(norms), *states(model.state_dict(), alone.state_dict())],
    )

# Mixed precision: compute in half, keep float32.
alone = net(dtype=torch.float32)
train(alone, sgd(alone), data.float())
for param, reduce in ((torch.bfloat16, torch.float32), (torch.float16, None)):
    seen = []
    model = net(dtype=torch.float32)
    model[2].register_forward_hook(lambda m, args, out, to=seen: to.append(out.dtype))
    policy = MixedPrecisionPolicy(
        param_dtype=param, reduce_dtype=reduce, output_dtype=torch.float32
    )
    shard(model, mp_policy=policy)
    train(model, sgd(model), [x.float() for x in mine])
    check(f"MixedPrecisionPolicy {param}", states(model.state_dict(), alone.state_dict()))
    right = set(seen) == {param} and {p.dtype for p in model.parameters()} == {torch.float32}
    check(f"MixedPrecisionPolicy {param}: dtypes", [(float(right), 1.0)])

# State dicts of every wrapper: whole or sharded, and back into a fresh model that trains on.
BUILD = {
    "fully_shard": shard,
    "HSDP": lambda model: shard(model, mesh="HSDP"),
    "FSDP1": lambda model: FSDP(model, use_orig_params=True),
    "DDP": DDP,
    "plain": lambda model: model,
}
for name, build in BUILD.items():
    for options in (
        StateDictOptions(),
        StateDictOptions(full_state_dict=True),
        StateDictOptions(full_state_dict=True, cpu_offload=True),
    ):
        if name == "plain" or (name == "DDP" and not options.cpu_offload):
            continue
        model = build(net())
        opt = adam(model)
        train(model, opt, mine[:2])
        weights, moments = get_state_dict(model, opt, options=options)
        again = build(net(seed=50))
        opt2 = adam(again)
        if options.cpu_offload and options.full_state_dict:
            check(f"{name}: only rank 0 has it", [(float(bool(weights)), float(rank == 0))])
            box = [copy.deepcopy((weights, moments))]
            dist.broadcast_object_list(box, src=0)
            sent = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
            set_model_state_dict(again, weights, options=sent)
            got = get_model_state_dict(again, options=StateDictOptions(full_state_dict=True))
            want = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
            check(f"{name}: broadcast_from_rank0", states(got, want))
            weights, moments = copy.deepcopy(box[0])
        set_state_dict(
            again,
            opt2,
            model_state_dict=weights,
            optim_state_dict=moments,
            options=StateDictOptions(full_state_dict=options.full_state_dict),
        )
        train(again, opt2, mine[2:])
        got = get_model_state_dict(again, options=StateDictOptions(full_state_dict=True))
        kind = "full" if options.full_state_dict else "sharded"
        kind += ", rank 0" if options.cpu_offload else ""
        check(f"{name}: {kind} state dict", states(got, reference.state_dict()))

# Distributed checkpoints in the run's own folder, from one wrapper into another.
model = shard()
opt = adam(model)
train(model, opt, mine[:2])
dcp.save({"model": get_model_state_dict(model), "opt": get_optimizer_state_dict(model, opt)},
         checkpoint_id="saved")  # fmt: skip
pending = dcp.async_save(
    {"model": get_model_state_dict(model), "opt": get_optimizer_state_dict(model, opt)},
    checkpoint_id="saved_async",
)
pending.result()
check("files of this folder only", [(float(Path("saved/.metadata").is_file()), 1.0)])
for name, build in BUILD.items():
    for folder in ("saved", "saved_async") if name == "fully_shard" else ("saved",):
        again = build(net(seed=51))
        opt2 = adam(again)
        state = {"model": get_model_state_dict(again)}
        if name != "FSDP1":  # its optimizer state has another form
            state["opt"] = get_optimizer_state_dict(again, opt2)
        dcp.load(state, checkpoint_id=folder)
        set_model_state_dict(again, state["model"])
        want = {key: whole(value) for key, value in get_model_state_dict(model).items()}
        if name != "FSDP1":
            set_optimizer_state_dict(again, opt2, state["opt"])
            train(again, opt2, data[2:] if name == "plain" else mine[2:])
            want = reference.state_dict()
        got = get_model_state_dict(again, options=StateDictOptions(full_state_dict=True))
        check(f"{folder} into {name}", states(got, want))
whole_file = {"x": torch.arange(3.0)}
torch.save(whole_file, f"own_{rank}.pt")
check("torch.save", [(torch.load(f"own_{rank}.pt")["x"], whole_file["x"])])

local = sum(p.to_local().numel() for p in shard().parameters())
total = sum(p.numel() for p in net().parameters())
held = torch.tensor(local)
dist.all_reduce(held)
check("the shards add up", [(held, total)])
check(
    "parameters are DTensors",
    [(float(all(isinstance(p, DTensor) for p in model.parameters())), 1.0)],
)
alone = net()
train(alone, adam(alone), mine)
check("control: not sharded, not synced", states(alone.state_dict(), reference.state_dict()))
dist.destroy_process_group()
