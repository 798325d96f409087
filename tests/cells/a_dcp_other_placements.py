# kind: A
# ranks: 4
# outcome: ok
# says: rows saved, columns and tiles loaded
# no-diagnosis
# why: a checkpoint written as row shards is read as column shards and as 2-d tiles, then as one plain tensor; pytorch#127351
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros

dist.init_process_group("gloo")
flat = init_device_mesh("cpu", (4,))
grid = init_device_mesh("cpu", (2, 2))
full = torch.arange(70.0).reshape(7, 10)
dcp.save({"w": distribute_tensor(full, flat, [Shard(0)]), "step": 12}, checkpoint_id="rows")
for mesh, places in ((flat, [Shard(1)]), (grid, [Shard(0), Shard(1)]), (grid, [Replicate(), Shard(0)])):
    state = {"w": zeros(7, 10, device_mesh=mesh, placements=places), "step": 0}
    dcp.load(state, checkpoint_id="rows")
    assert torch.equal(state["w"].full_tensor(), full) and state["step"] == 12
plain = {"w": torch.zeros(7, 10)}
dcp.load(plain, checkpoint_id="rows")
assert torch.equal(plain["w"], full)
if dist.get_rank() == 0:
    print("rows saved, columns and tiles loaded")
dist.destroy_process_group()
