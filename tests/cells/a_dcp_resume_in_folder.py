# kind: A
# ranks: 2
# outcome: ok
# says: checkpoint files: \['\.metadata', '__0_0\.distcp', '__1_0\.distcp'\]
# says: resumed run equals the uninterrupted one
# why: distributed checkpoint of a fully_shard model and its optimizer, written to and read from the working folder; pytorch#125740
import os
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard


def fresh(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 9), nn.SiLU(), nn.Linear(9, 3))
    fully_shard(model[0])
    fully_shard(model)
    return model, torch.optim.Adam(model.parameters(), lr=0.05)


def advance(model, opt, batches):
    for x in batches:
        opt.zero_grad()
        model(x).abs().mean().backward()
        opt.step()


dist.init_process_group("gloo")
torch.manual_seed(100 + dist.get_rank())
batches = torch.randn(5, 6, 4)
model, opt = fresh(seed=0)
advance(model, opt, batches[:2])
weights, state = get_state_dict(model, opt)
dcp.save({"model": weights, "optim": state}, checkpoint_id="ckpt")
advance(model, opt, batches[2:])
again, opt2 = fresh(seed=99)  # other weights until the checkpoint is loaded
weights, state = get_state_dict(again, opt2)
dcp.load({"model": weights, "optim": state}, checkpoint_id="ckpt")
set_state_dict(again, opt2, model_state_dict=weights, optim_state_dict=state)
advance(again, opt2, batches[2:])
for p, q in zip(again.parameters(), model.parameters()):
    torch.testing.assert_close(p.full_tensor(), q.full_tensor())
print("checkpoint files:", sorted(os.listdir("ckpt")))
print("resumed run equals the uninterrupted one")
dist.destroy_process_group()
