# kind: E
# ranks: 3
# outcome: ok
# says: actors follow the learner: True
# no-diagnosis
# why: rank 0 learns, the others act: only rank 0 has an optimizer, and its weights are broadcast after every update; IMPALA-like programs
import torch
import torch.nn as nn
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(policy.parameters(), lr=1e-2) if rank == 0 else None
for update in range(3):
    for p in policy.parameters():
        dist.broadcast(p.detach(), src=0)
    with torch.no_grad():
        obs = torch.randn(6, 4)
        actions = torch.distributions.Categorical(logits=policy(obs)).sample()
        reward = (actions == (obs[:, 0] > 0)).float()
    trip = torch.cat([obs, actions[:, None].float(), reward[:, None]], 1)
    trips = [torch.empty_like(trip) for _ in range(world)] if rank == 0 else None
    dist.gather(trip, trips, dst=0)
    if rank == 0:
        batch = torch.cat(trips[1:])
        logp = policy(batch[:, :4]).log_softmax(1).gather(1, batch[:, 4:5].long())
        loss = -(logp[:, 0] * (batch[:, 5] - batch[:, 5].mean())).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
for p in policy.parameters():
    dist.broadcast(p.detach(), src=0)
flat = torch.cat([p.detach().flatten() for p in policy.parameters()])
seen = [torch.empty_like(flat) for _ in range(world)]
dist.all_gather(seen, flat)
print("actors follow the learner:", all(torch.equal(f, seen[0]) for f in seen))
dist.destroy_process_group()
