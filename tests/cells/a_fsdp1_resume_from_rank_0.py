# kind: A
# ranks: 2
# outcome: ok
# says: only rank 0 wrote a file
# says: first and second moments differ, as they must
# says: training resumed from rank 0's file equals training that never stopped
# no-diagnosis
# why: the documented FSDP1 checkpoint: whole state on rank 0 with offload_to_cpu, loaded with sync_module_states, optimizer included; axolotl#400, transformers#23034, pytorch#75908
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullOptimStateDictConfig, FullStateDictConfig
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

dist.init_process_group("gloo")
rank = dist.get_rank()
weights_rank0 = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
moments_rank0 = FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=True)


def net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))


def shard(model):
    policy = ModuleWrapPolicy({nn.Linear})
    model = FSDP(model, auto_wrap_policy=policy, use_orig_params=True, sync_module_states=True)
    return model, torch.optim.AdamW(model.parameters(), lr=0.05)


def train(model, opt, batches):
    for x in batches:
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()


torch.manual_seed(50 + rank)
batches = torch.randn(6, 4, 6)
model, opt = shard(net(0))
train(model, opt, batches[:3])
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, weights_rank0, moments_rank0):
    state = {"model": model.state_dict(), "opt": FSDP.optim_state_dict(model, opt)}
if rank == 0:
    torch.save(state, "checkpoint.pt")
    print("only rank 0 wrote a file:", os.listdir(".").count("checkpoint.pt"))
    first = state["opt"]["state"]["0.weight"]
    assert not torch.allclose(first["exp_avg"], first["exp_avg_sq"])
    print("first and second moments differ, as they must")
dist.barrier()
train(model, opt, batches[3:])  # never stopped

loaded = torch.load("checkpoint.pt") if rank == 0 else None
fresh = net(7 + rank)  # other weights, different on each rank
if rank == 0:
    fresh.load_state_dict(loaded["model"])
again, opt2 = shard(fresh)
with FSDP.state_dict_type(again, StateDictType.FULL_STATE_DICT, weights_rank0, moments_rank0):
    moments = loaded["opt"] if rank == 0 else None
    opt2.load_state_dict(FSDP.optim_state_dict_to_load(again, opt2, moments))
train(again, opt2, batches[3:])
with FSDP.summon_full_params(model), FSDP.summon_full_params(again):
    for got, want in zip(again.parameters(), model.parameters()):
        torch.testing.assert_close(got, want)
if rank == 0:
    print("training resumed from rank 0's file equals training that never stopped")
dist.destroy_process_group()
