"""What stock PyTorch refuses is refused on our ranks too, and the learner is told why."""

import pytest

from tests.engine.conftest import Runner

SETUP = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, ShardingStrategy, fully_shard
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
layer = nn.SyncBatchNorm(3)
"""
TIED = """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.out.weight = self.table.weight
    def forward(self, tokens):
        return self.out(self.table(tokens))
policy = ModuleWrapPolicy({nn.Embedding, nn.Linear})
FSDP(Tied(), auto_wrap_policy=policy, use_orig_params=True)(torch.arange(5))
"""
PENALTY = """
x = torch.randn(4, 3, requires_grad=True)
grad, = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
grad.square().sum().backward()
"""
NORM_IN_FLOAT64 = """
model = FSDP(nn.Linear(2, 2).double())
model(torch.ones(1, 2).double()).sum().backward()
model.clip_grad_norm_(1.0)
"""
NORM_OF_EMPTY_SHARD = """
model = fully_shard(nn.Linear(2, 1))
model(torch.ones(1, 2)).sum().backward()
nn.utils.clip_grad_norm_(model.parameters(), 1.0, float("inf"))
"""
REFUSED = {
    "double backward": (PENALTY, "syncbn-double-backward"),
    "vmap": ("torch.func.vmap(layer)(torch.randn(2, 4, 3))", "syncbn-in-transform"),
    "other channels": ("layer(torch.randn(4, 5))", "batch-norm-channels"),
    "integers": ("layer(torch.ones(4, 3, dtype=torch.int64))", "batch-norm-integers"),
    "float64 into float32": ("layer(torch.randn(4, 3).double())", "unpacks-dtypes"),
    "uneven all_gather": (
        "dist.all_gather([torch.empty(1 + r) for r in range(world)], torch.ones(1 + rank))",
        "shapes-uneven",
    ),
    "float8": ("dist.all_reduce(torch.ones(4).to(torch.float8_e5m2))", "dtype-not-supported"),
    "bits of floats": ("dist.all_reduce(torch.ones(2), dist.ReduceOp.BOR)", "reduce-op"),
    "largest of sparse": (
        "dist.all_reduce(torch.eye(2).to_sparse(), dist.ReduceOp.MAX)",
        "reduce-op",
    ),
    "group on a GPU": (
        "dist.destroy_process_group()\n"
        "dist.init_process_group('nccl', device_id=torch.device('cuda', rank))",
        "device-id-on-cpu",
    ),
    "hook of nccl": (
        "DDP(layer).register_comm_hook(None, default_hooks.bf16_compress_hook)",
        "hook-needs-nccl",
    ),
    "tied weights": (TIED, "tied-weights"),
    "offload of FSDP1": (
        "FSDP(nn.Linear(2, 2), cpu_offload=CPUOffload(True))(torch.ones(1, 2))",
        "accelerator-missing",
    ),
    "offload of fully_shard": (
        "fully_shard(nn.Linear(2, 2), offload_policy=CPUOffloadPolicy())",
        "accelerator-missing",
    ),
    "HYBRID_SHARD alone": (
        "FSDP(nn.Linear(2, 2), sharding_strategy=ShardingStrategy.HYBRID_SHARD)",
        "hybrid-without-groups",
    ),
    "norm in float64": (NORM_IN_FLOAT64, "clip-of-float64"),
    "norm of an empty shard": (NORM_OF_EMPTY_SHARD, "norm-of-no-elements"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_refusal_is_explained(run: Runner, name: str) -> None:
    program, code = REFUSED[name]
    ran = await run(SETUP + program, ranks=2)
    assert ran.outcome.status == "error"
    assert ran.codes == [code], ran.outcome.diagnosis
    assert ran.outcome.diagnosis[0].line is not None
