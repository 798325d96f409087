"""ZeroRedundancyOptimizer against the optimizer it shards, in one process. After common.py."""
# ruff: noqa: F821 - the names of common.py

import copy

from torch.distributed.optim import ZeroRedundancyOptimizer as ZeRO
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817

OPTIMIZERS = {
    "SGD": (torch.optim.SGD, {"lr": 0.1}),
    "SGD with momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "Adam": (torch.optim.Adam, {"lr": 0.02}),
    "Adam, amsgrad": (torch.optim.Adam, {"lr": 0.02, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.02, "weight_decay": 0.1}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5}),
}
data = batches(steps=4)
mine = [share(x) for x in data]


def decayed(model):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    return [
        {"params": matrices, "weight_decay": 0.1, "lr": 0.03},
        {"params": vectors, "weight_decay": 0.0},
    ]


def same_state(got, want):
    """Pairs of everything that two optimizers' state_dicts say."""
    pairs = []
    for index, state in want["state"].items():
        for key, value in state.items():
            if value is not None:
                pairs.append((got["state"][index][key], value))
    for mine_, theirs in zip(got["param_groups"], want["param_groups"], strict=True):
        pairs += [(mine_[key], theirs[key]) for key in ("lr", "weight_decay") if key in theirs]
        pairs.append((mine_["params"], theirs["params"]))
    return pairs


for name, (stepper, options) in OPTIMIZERS.items():
    for views in (False, True):
        alone, model = net(), DDP(net(), gradient_as_bucket_view=views)
        plain = stepper(alone.parameters(), **options)
        zero = ZeRO(model.parameters(), stepper, parameters_as_bucket_view=views, **options)
        train(alone, plain, data)
        train(model, zero, mine)
        pairs = states(model.module.state_dict(), alone.state_dict())
        zero.consolidate_state_dict(to=world - 1)
        if rank == world - 1:
            pairs += same_state(zero.state_dict(), plain.state_dict())
        check(f"{name}, parameters_as_bucket_view={views}", pairs)
        held = sum(t.numel() for s in zero.optim.state.values() for t in s.values() if t.ndim)
        total = sum(t.numel() for s in plain.state.values() for t in s.values() if t.ndim)
        held = torch.tensor(held)
        dist.all_reduce(held)
        check(f"{name}, views={views}: the ranks' states add up", [(held, total)])

# Parameter groups with their own settings, a scheduler, a group added late, clipping.
alone, model = net(), DDP(net())
plain = torch.optim.AdamW(decayed(alone), lr=0.05)
zero = ZeRO(decayed(model), torch.optim.AdamW, lr=0.05)
schedules = [torch.optim.lr_scheduler.StepLR(o, step_size=1, gamma=0.5) for o in (plain, zero)]
late = [nn.Linear(5, 5).double() for _ in range(2)]
late[1].load_state_dict(late[0].state_dict())
for layer in late:
    dist.broadcast(layer.weight.data, src=0)
    dist.broadcast(layer.bias.data, src=0)
late[1] = DDP(late[1])
for step, x in enumerate(data):
    for m, o, s, extra, part in (
        (alone, plain, schedules[0], late[0], x),
        (model, zero, schedules[1], late[1], share(x)),
    ):
        if step == 2:
            o.add_param_group({"params": list(extra.parameters()), "lr": 0.01})
        o.zero_grad()
        extra(m(part)).square().mean().backward()
        nn.utils.clip_grad_norm_([*m.parameters(), *extra.parameters()], 0.05)
        o.step()
        s.step()
check(
    "groups, scheduler, add_param_group, clipping",
    [
        *states(model.module.state_dict(), alone.state_dict()),
        *states(late[1].module.state_dict(), late[0].state_dict()),
        *[(a["lr"], b["lr"]) for a, b in zip(zero.param_groups, plain.param_groups, strict=True)],
    ],
)

# Saved on one rank, loaded on all, trained on.
model = DDP(net())
zero = ZeRO(decayed(model), torch.optim.AdamW, lr=0.05)
train(model, zero, mine[:2])
zero.consolidate_state_dict(to=0)
box = [zero.state_dict() if rank == 0 else None]
dist.broadcast_object_list(box, src=0)
again = DDP(copy.deepcopy(model.module))
resumed = ZeRO(decayed(again), torch.optim.AdamW, lr=0.7)
resumed.load_state_dict(copy.deepcopy(box[0]))  # rank 0's has the tensors of `zero` itself
train(model, zero, mine[2:])
train(again, resumed, mine[2:])
check("resumed from a consolidated state_dict", states(again.state_dict(), model.state_dict()))

model = DDP(net())
zero = ZeRO(model.parameters(), torch.optim.Adam, lr=0.1)
train(model, zero, mine[:1])
if rank == 0:
    try:
        zero.state_dict()
    except RuntimeError as error:
        told = "Optimizer state has not been consolidated on this rank" in str(error)
    check_pairs = [(float(told), 1.0)]
else:
    check_pairs = []
check("state_dict before consolidation is refused", check_pairs)
refused("optimizer class must be a class", lambda: ZeRO(net().parameters(), 3), "TypeError")

model = net()
train(model, torch.optim.Adam(model.parameters(), lr=0.02), mine)
alone = net()
train(alone, torch.optim.Adam(alone.parameters(), lr=0.02), data)
check("control: no DDP", states(model.state_dict(), alone.state_dict()))
dist.destroy_process_group()
