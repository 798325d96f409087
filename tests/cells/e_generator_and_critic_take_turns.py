# kind: E
# ranks: 2
# outcome: ok
# says: both models equal on both ranks: True
# no-diagnosis
# why: a GAN in two DDP modules: the critic's gradients from the generator's turn are cleared, its parameters frozen during that turn; pytorch#22095-like threads
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
gen = DDP(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)))
critic = DDP(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
torch.manual_seed(8 + rank)
for it in range(3):
    critic.requires_grad_(True)
    for _ in range(2):
        with torch.no_grad():
            fake = gen.module(torch.randn(6, 3))
        both = critic(torch.cat([torch.randn(6, 2) + 2, fake]))
        loss_c = both[6:].mean() - both[:6].mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    critic.requires_grad_(False)
    loss_g = -critic.module(gen(torch.randn(6, 3))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
flat = torch.cat([p.detach().flatten() for m in (gen, critic) for p in m.parameters()])
seen = [torch.empty_like(flat) for _ in range(2)]
dist.all_gather(seen, flat)
print("both models equal on both ranks:", torch.equal(*seen))
dist.destroy_process_group()
