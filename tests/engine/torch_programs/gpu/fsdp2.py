# ruff: noqa: F821 - begin.py comes before it
# FSDP2, each layer with parameters a unit.
from torch.distributed.fsdp import fully_shard

model = net()
for layer in (model[0], model[4], model[6]):
    fully_shard(layer)
fully_shard(model)
compared(model, torch.optim.Adam(model.parameters(), lr=1e-2))
dist.destroy_process_group()
