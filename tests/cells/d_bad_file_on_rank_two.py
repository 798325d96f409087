# kind: D
# ranks: 4
# outcome: error
# says: rank 3 starts loading
# diagnosis: (?=.*rank[^.;]{0,16}?(?<!\d)2(?!\d))(?=.*(KeyError|raised|exception|failed|crash|died))
# why: one rank dies of its own exception; the others only report a closed connection, so the message must point at rank 2; torchtitan#1342
import torch
import torch.distributed as dist


def load(rank):
    shards = {0: 5, 1: 5, 3: 5}  # the part for rank 2 was never uploaded
    return torch.full((shards[rank], 2), float(rank))


dist.init_process_group("gloo")
rank = dist.get_rank()
print(f"rank {rank} starts loading", flush=True)
dist.barrier()
rows = load(rank)
mean = rows.mean(0)
dist.all_reduce(mean)
mean /= dist.get_world_size()
gathered = [torch.empty(2) for _ in range(dist.get_world_size())]
dist.all_gather(gathered, mean)
print("feature means", mean.tolist())
dist.destroy_process_group()
