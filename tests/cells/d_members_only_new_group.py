# kind: D
# ranks: 4
# outcome: deadlock
# says: rank 1 opens its pair
# diagnosis: new_group
# why: only the members of a pair call new_group; the ranks no longer agree which group is being made and wait for ever; pytorch#25390
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
pair = None
if rank < 2:
    print("rank", rank, "opens its pair", flush=True)
    pair = dist.new_group([0, 1])  # ranks 2 and 3 do not take part
leaders = dist.new_group([0, 2])  # everybody calls this one
value = torch.tensor([float(rank)])
if rank in (0, 2):
    dist.all_reduce(value, group=leaders)
if pair is not None:
    dist.all_reduce(value, group=pair)
print("rank", rank, "value", value.item())
dist.barrier()
dist.destroy_process_group()
