# kind: D
# ranks: 2
# outcome: deadlock|error
# says: rank 0 saves
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)0(?!\d))(?=.*all_gather)(?=.*rank[^.;]{0,16}?(?<!\d)1(?!\d))(?=.*barrier)(?=.*get_rank)
# why: the full state dict of an FSDP model is asked for on rank 0 only; pytorch#122903
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def save(model, path):
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        torch.save(model.state_dict(), path)

dist.init_process_group("gloo")
model = FSDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
model(torch.randn(3, 4)).sum().backward()
if dist.get_rank() == 0:
    print("rank 0 saves", flush=True)
    save(model, "model.pt")
dist.barrier()
dist.destroy_process_group()
