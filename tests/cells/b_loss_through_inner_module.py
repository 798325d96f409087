# kind: B
# ranks: 3
# outcome: ok
# says: policies that differ from rank 0's: 2 of 2
# diagnosis: (?=.*(\.module\b|bypass|inner module|unwrapped))(?=.*(gradient|backward|averag|not reduc|never reduc))
# why: training forward goes to model.module, DDP's hooks are never armed and gradients stay local; minimind#853
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
policy = DDP(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)))
opt = torch.optim.Adam(policy.parameters(), lr=0.01)
torch.manual_seed(1000 + rank)  # each rank plays its own episodes
actor = policy.module
for episode in range(3):
    obs = torch.randn(10, 4)
    dist_over_actions = Categorical(logits=actor(obs))
    action = dist_over_actions.sample()
    advantage = obs[:, 0] * (action.float() - 0.5)
    loss = -(dist_over_actions.log_prob(action) * advantage).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
flat = torch.cat([p.detach().flatten() for p in policy.parameters()])
all_flat = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(all_flat, flat)
print(
    "policies that differ from rank 0's:",
    sum(not torch.equal(f, all_flat[0]) for f in all_flat[1:]),
    "of",
    world - 1,
)
dist.destroy_process_group()
