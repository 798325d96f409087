# kind: A
# ranks: 4
# outcome: ok
# says: FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2 all match
# why: every FSDP1 sharding strategy trains to the one-process weights; the ZeRO stages differ in memory, not in the result; pytorch#98501
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


class Block(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


def net():
    torch.manual_seed(1)
    return nn.Sequential(
        *[Block(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6)) for _ in range(2)], nn.Linear(6, 5)
    )


def fit(model, batches):
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for x in batches:
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
batches, single = torch.randn(3, 8, 6), net()
fit(single, batches)
names = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"]
for name in names:
    mesh = (
        init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        if "HYBRID" in name
        else None
    )
    model = FSDP(
        net(),
        sharding_strategy=ShardingStrategy[name],
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        device_mesh=mesh,
        device_id=torch.device("cpu"),
        use_orig_params=True,
    )
    fit(model, batches[:, rank * 2 : rank * 2 + 2])
    with FSDP.summon_full_params(model, writeback=False):
        for got, want in zip(model.parameters(), single.parameters()):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, msg=name)
print(*names, "all match")
dist.destroy_process_group()
