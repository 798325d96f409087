# kind: A
# ranks: 4
# outcome: ok
# says: pairs \[1, 1, 5, 5\]; tickets \[1, 2, 3, 4\]; parts \['a', 'b', 'c', 'd'\]
# no-diagnosis
# why: new_subgroups, group_src, object collectives, monitored_barrier and a counter in a prefixed store; pytorch#91760, pytorch#84363
import torch
import torch.nn as nn
import torch.distributed as dist
from datetime import timedelta

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
pair, _ = dist.new_subgroups(group_size=2)
value = torch.tensor([rank])
dist.all_reduce(value, group=pair)
leader = torch.tensor([rank])
dist.broadcast(leader, group=pair, group_src=1)
assert leader.item() == dist.get_process_group_ranks(pair)[1]
store = dist.PrefixStore("tickets", dist.distributed_c10d._get_default_store())
ticket = store.add("next", 1)
part = [None]
dist.scatter_object_list(part, list("abcd") if rank == 0 else None, src=0)
rows = [None] * world if rank == 3 else None
dist.gather_object((value.item(), ticket, part[0]), rows, dst=3)
dist.monitored_barrier(timeout=timedelta(seconds=10))
if rank == 3:
    print("pairs %s; tickets %s; parts %s" % ([r[0] for r in rows], sorted(r[1] for r in rows), [r[2] for r in rows]))
dist.destroy_process_group()
