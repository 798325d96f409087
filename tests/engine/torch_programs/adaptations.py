"""What a lesson's lines do on CPU ranks, as pasted; prints what was seen, one JSON object."""

import gc
import inspect
import json
import os
import pickle
import warnings
import weakref

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import init_process_group, new_group
from torch.distributed.fsdp import FullStateDictConfig, ShardingStrategy, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817 - as in the lesson
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817


def raised(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any, to show it
        return f"{type(error).__name__}: {error}"
    return None


def net():
    return nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


class OwnDDP(DDP):
    def __init__(self, module, rank):
        super().__init__(module, [rank], rank)


local_rank = int(os.environ["LOCAL_RANK"])
seen = {"before init": raised(lambda: FSDP(net()))}
init_process_group("nccl")
seen["backend"] = dist.get_backend()
seen["group"] = dist.get_backend(new_group([0, 1], backend="cpu:gloo,cuda:nccl"))
seen["same init"] = torch.distributed.init_process_group is init_process_group

model = nn.SyncBatchNorm.convert_sync_batchnorm(net())
x = torch.randn(5, 6)
for wrapped in (
    DDP(model, device_ids=[local_rank], output_device=local_rank),
    DDP(net(), [0]),
    DDP(net(), output_device=1),
    OwnDDP(net(), local_rank),
    FSDP(net()),
    FSDP(net(), device_id=local_rank),
):
    wrapped(x).sum().backward()
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    FSDP(net(), sharding_strategy=ShardingStrategy.NO_SHARD)
seen["warned in"] = [w.filename for w in warned if "NO_SHARD" in str(w.message)]
synced = FSDP(net(), sync_module_states=True)
whole = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    with FSDP.state_dict_type(synced, StateDictType.FULL_STATE_DICT, whole):
        seen["whole state"] = len(synced.state_dict())
seen["two ids"] = raised(lambda: DDP(net(), device_ids=[0, 1]))
seen["device by name"] = raised(lambda: DDP(net(), device_ids=["cuda:0"]))
seen["wrong argument"] = raised(lambda: FSDP(net(), no_such_argument=1))
seen["cuda"] = raised(lambda: net().cuda())
seen["set_device"] = raised(lambda: torch.cuda.set_device(0))

seen["is SyncBatchNorm"] = type(model[1]) is nn.SyncBatchNorm and isinstance(
    pickle.loads(pickle.dumps(model))[1], nn.SyncBatchNorm
)
seen["parameters"] = {
    name: list(inspect.signature(f).parameters)[:3]
    for name, f in {"DDP": DDP, "FSDP": FSDP, "init": init_process_group}.items()
}
with warnings.catch_warnings():
    warnings.simplefilter("error")
    torch.manual_seed(0)
    nn.SyncBatchNorm(6)(x)

second = x.clone().requires_grad_()
(grad,) = torch.autograd.grad(model(second).square().sum(), second, create_graph=True)
seen["double backward"] = raised(lambda: grad.sum().backward())

group = weakref.ref(dist.group.WORLD)
dist.destroy_process_group()
gc.collect()
seen["group is kept"] = group() is not None
print(json.dumps(seen))
