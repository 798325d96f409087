"""Programs that train one model under every strategy, and their Setups."""

from dataclasses import dataclass

from engine.costs.setup import (
    DataParallel,
    FlatSharding,
    Norm,
    RowSharding,
    Setup,
    Strategy,
    Unit,
)

BEGIN = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
dtype = torch.float32
"""
EQUAL = """
model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
units, width = list(model), 64
"""
UNEVEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(7, 9)
        self.body = nn.ModuleList([nn.Linear(9, 9), nn.Linear(9, 5)])

    def forward(self, x):
        x = self.embed(x)
        for layer in self.body:
            x = layer(x)
        return x

model = Net()
units, width = list(model.body), 7
"""
NORMED = """
model = nn.Sequential(nn.Linear(7, 7), nn.BatchNorm1d(7), nn.Linear(7, 7), nn.BatchNorm1d(7))
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
units, width = [], 7
"""
LARGE = """
model = nn.Sequential(*[nn.Linear(400, 400) for _ in range(3)])
units, width = [], 400
"""
TRAIN = """
for _ in range(3):
    model(torch.randn(4, width, dtype=dtype)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
ADAM = "optimizer = torch.optim.Adam(model.parameters())\n"
ZERO = """
model = DDP(model, gradient_as_bucket_view=True)
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam)
"""
MESH = """
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
"""

EQUAL_UNITS = tuple(Unit(shapes=((64, 64), (64,))) for _ in range(8))
UNEVEN_ROOT = Unit(shapes=((9, 7), (9,)))
UNEVEN_UNITS = (Unit(shapes=((9, 9), (9,))), Unit(shapes=((5, 9), (5,))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One program on 4 ranks and what is predicted for it."""

    source: str
    setup: Setup


def fsdp1(strategy: str, use_orig_params: bool = False) -> str:
    """FullyShardedDataParallel around every unit and the model."""
    mesh = ", device_mesh=mesh" if "HYBRID" in strategy else ""
    options = (
        f"sharding_strategy=ShardingStrategy.{strategy}, use_orig_params={use_orig_params}{mesh}"
    )
    return f"""
for parent in list(model.modules()):
    for name, child in list(parent.named_children()):
        if any(child is unit for unit in units):
            setattr(parent, name, FSDP(child, {options}))
model = FSDP(model, {options})
"""


def fsdp2(units: str = "None", root: str = "None", options: str = "", each: int = 1) -> str:
    """fully_shard on every unit, or on each so many together, and on the model."""
    return f"""
for first in range(0, len(units), {each}):
    fully_shard(units[first:first + {each}], reshard_after_forward={units}{options})
fully_shard(model, reshard_after_forward={root}{options})
"""


def equal(wrap: str, strategy: Strategy, *, num_replicas: int = 1, each: int = 1) -> Trained:
    """Eight equal layers and nothing else."""
    optimizer = "" if "optimizer" in wrap else ADAM
    units = tuple(
        Unit(shapes=sum((unit.shapes for unit in EQUAL_UNITS[i : i + each]), ()))
        for i in range(0, 8, each)
    )
    setup = Setup(strategy=strategy, units=units, world_size=4, num_replicas=num_replicas)
    return Trained(source=BEGIN + EQUAL + wrap + optimizer + TRAIN, setup=setup)


def uneven(wrap: str, strategy: Strategy, *, num_replicas: int = 1) -> Trained:
    """Rows that 4 ranks do not divide, and an unwrapped layer."""
    optimizer = "" if "optimizer" in wrap else ADAM
    setup = Setup(
        strategy=strategy,
        units=UNEVEN_UNITS,
        root=UNEVEN_ROOT,
        world_size=4,
        num_replicas=num_replicas,
    )
    return Trained(source=BEGIN + UNEVEN + wrap + optimizer + TRAIN, setup=setup)


def half(wrap: str, strategy: Strategy) -> Trained:
    """As uneven, in bfloat16 and with momentum."""
    start = BEGIN + UNEVEN + "dtype = torch.bfloat16\nmodel.to(dtype)\n"
    end = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n" + TRAIN
    setup = Setup(
        strategy=strategy,
        units=UNEVEN_UNITS,
        root=UNEVEN_ROOT,
        world_size=4,
        optimizer="SGD-momentum",
        element_bytes=2,
    )
    return Trained(source=start + wrap + end, setup=setup)


def normed(wrap: str, strategy: Strategy) -> Trained:
    """Two linear and two synchronised batch-norm layers, all in the root."""
    linear, norm = ((7, 7), (7,)), ((7,), (7,))
    setup = Setup(
        strategy=strategy,
        units=(),
        root=Unit(shapes=linear + norm + linear + norm),
        world_size=4,
        norms=(Norm(num_channels=7, is_synced=True), Norm(num_channels=7, is_synced=True)),
    )
    return Trained(source=BEGIN + NORMED + wrap + ADAM + TRAIN, setup=setup)


def large() -> Trained:
    """Three layers that do not fit DDP's first bucket together."""
    unit = Unit(shapes=((400, 400), (400,)))
    setup = Setup(strategy=DataParallel(), units=(unit,) * 3, world_size=4)
    return Trained(source=BEGIN + LARGE + "model = DDP(model)\n" + ADAM + TRAIN, setup=setup)


HSDP = MESH + fsdp2(options=", mesh=mesh")
HYBRID = MESH + fsdp1("HYBRID_SHARD")
EQUAL_PROGRAMS = {
    "ddp": equal("model = DDP(model)\n", DataParallel()),
    "ddp-view": equal(
        "model = DDP(model, gradient_as_bucket_view=True)\n",
        DataParallel(gradient_as_bucket_view=True),
    ),
    "zero1": equal(ZERO, DataParallel(zero_redundancy=True, gradient_as_bucket_view=True)),
    "shard-grad-op": equal(fsdp1("SHARD_GRAD_OP"), FlatSharding(sharding_strategy="SHARD_GRAD_OP")),
    "full-shard": equal(fsdp1("FULL_SHARD"), FlatSharding(sharding_strategy="FULL_SHARD")),
    "hybrid-shard": equal(HYBRID, FlatSharding(sharding_strategy="HYBRID_SHARD"), num_replicas=2),
    "fsdp2-false": equal(fsdp2("False"), RowSharding(reshard_after_forward=False)),
    "fsdp2-true": equal(fsdp2("True"), RowSharding(reshard_after_forward=True)),
    # Every unit makes process groups of its own, and a run may have so many threads.
    "fsdp2-2": equal(fsdp2("2", each=2), RowSharding(reshard_after_forward=2), each=2),
    "fsdp2-hsdp": equal(HSDP, RowSharding(), num_replicas=2),
}
UNEVEN_PROGRAMS = {
    "ddp-buckets": uneven(
        "model = DDP(model, bucket_cap_mb=0.0004)\n", DataParallel(bucket_cap_bytes=419)
    ),
    "ddp-unused": uneven(
        "model = DDP(model, find_unused_parameters=True)\n",
        DataParallel(find_unused_parameters=True),
    ),
    "zero1": uneven(ZERO, DataParallel(zero_redundancy=True, gradient_as_bucket_view=True)),
    "no-shard": uneven(fsdp1("NO_SHARD"), FlatSharding(sharding_strategy="NO_SHARD")),
    "full-shard": uneven(fsdp1("FULL_SHARD"), FlatSharding(sharding_strategy="FULL_SHARD")),
    "full-shard-orig": uneven(
        fsdp1("FULL_SHARD", use_orig_params=True),
        FlatSharding(sharding_strategy="FULL_SHARD", use_orig_params=True),
    ),
    "hybrid-zero2": uneven(
        MESH + fsdp1("_HYBRID_SHARD_ZERO2"),
        FlatSharding(sharding_strategy="_HYBRID_SHARD_ZERO2"),
        num_replicas=2,
    ),
    "fsdp2": uneven(fsdp2(), RowSharding()),
    "fsdp2-root-true": uneven(
        fsdp2("True", "True"),
        RowSharding(reshard_after_forward=True, root_reshard_after_forward=True),
    ),
    "fsdp2-2": uneven(
        fsdp2("2", "2"), RowSharding(reshard_after_forward=2, root_reshard_after_forward=2)
    ),
    "full-shard-orig-half": half(
        fsdp1("FULL_SHARD", use_orig_params=True),
        FlatSharding(sharding_strategy="FULL_SHARD", use_orig_params=True),
    ),
    "ddp-norms": normed("model = DDP(model)\n", DataParallel()),
    "fsdp2-norms": normed(fsdp2(), RowSharding()),
    "ddp-large": large(),
}
