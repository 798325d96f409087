"""What is to be predicted: the description of one way to train one model.

May import engine.costs.{arguments,precision}.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from engine.costs.arguments import require_at_least, require_divisor, require_one_of
from engine.costs.precision import OptimizerName
from engine.costs.zero import Stage

ShardingStrategy = Literal[
    "FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", "NO_SHARD"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallel:
    """DistributedDataParallel, with ZeroRedundancyOptimizer or without."""

    zero_redundancy: bool = False
    gradient_as_bucket_view: bool = False
    find_unused_parameters: bool = False
    bucket_cap_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatSharding:
    """FullyShardedDataParallel (FSDP1): one flat parameter per unit.

    Raises: ValueError when sharding_strategy is unknown.
    """

    sharding_strategy: ShardingStrategy = "FULL_SHARD"
    use_orig_params: bool = False

    def __post_init__(self) -> None:
        known = get_args(ShardingStrategy)
        require_one_of("sharding_strategy", self.sharding_strategy, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSharding:
    """fully_shard (FSDP2): every parameter cut along its first dimension.

    reshard_after_forward is what the wrapped units get, root_reshard_after_forward what the root
    gets; None is torch's default, which reshards every unit but the root.
    """

    reshard_after_forward: bool | int | None = None
    root_reshard_after_forward: bool | int | None = None


Strategy = DataParallel | FlatSharding | RowSharding


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Parameters that are wrapped, gathered and freed together."""

    shapes: tuple[tuple[int, ...], ...]

    @property
    def numels(self) -> tuple[int, ...]:
        """Elements of each parameter."""
        return tuple(prod(shape) for shape in self.shapes)

    @property
    def num_parameters(self) -> int:
        """Elements of all parameters."""
        return sum(self.numels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """One batch-norm layer that trains and tracks its running statistics."""

    num_channels: int
    is_synced: bool
    input_needs_gradient: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One model under one strategy; units in the order of their forward.

    Raises: ValueError when world_size or element_bytes is below 1, num_replicas does not divide
    world_size, or reshard_after_forward is a number that does not divide the shard group.
    """

    strategy: Strategy
    units: tuple[Unit, ...]
    """Of FSDP, the wrapped children; of DDP, how its parameters are grouped does not matter."""
    root: Unit | None = None
    """Parameters of no wrapped child: they are the root's own unit."""
    world_size: int
    num_replicas: int = 1
    """Shard groups that hold the same shards: more than 1 for HYBRID_SHARD and HSDP."""
    optimizer: OptimizerName = "Adam"
    element_bytes: int = 4
    norms: tuple[Norm, ...] = ()

    def __post_init__(self) -> None:
        require_at_least("world_size", self.world_size, 1)
        require_at_least("element_bytes", self.element_bytes, 1)
        require_divisor("num_replicas", self.num_replicas, "world_size", self.world_size)
        if self.post_forward_ranks is not None:
            require_divisor(
                "reshard_after_forward",
                self.post_forward_ranks,
                "the shard group",
                self.num_shard_ranks,
            )

    @property
    def all_units(self) -> tuple[Unit, ...]:
        """The root's own unit first, then the wrapped ones, in forward order."""
        return (self.root, *self.units) if self.root and self.root.shapes else self.units

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of all parameters."""
        return tuple(shape for unit in self.all_units for shape in unit.shapes)

    @property
    def num_parameters(self) -> int:
        """Psi."""
        return sum(unit.num_parameters for unit in self.all_units)

    @property
    def num_shard_ranks(self) -> int:
        """Ranks among which states are cut."""
        return self.world_size // self.num_replicas

    @property
    def post_forward_ranks(self) -> int | None:
        """Ranks to which reshard_after_forward reshards when it is a number."""
        match self.strategy:
            case RowSharding(reshard_after_forward=ranks) if type(ranks) is int:
                return ranks
            case _:
                return None

    @property
    def is_resharded(self) -> bool:
        """Whether wrapped units free their parameters between forward and backward."""
        match self.strategy:
            case FlatSharding(sharding_strategy="FULL_SHARD" | "HYBRID_SHARD"):
                return True
            case RowSharding(reshard_after_forward=value):
                return value is not False
            case _:
                return False

    @property
    def is_root_resharded(self) -> bool:
        """Whether the root's own unit does so too."""
        match self.strategy:
            case RowSharding(root_reshard_after_forward=value):
                return value is not None and value is not False
            case _:
                return False

    @property
    def stage(self) -> Stage:
        """The ZeRO stage that the strategy corresponds to."""
        match self.strategy:
            case DataParallel(zero_redundancy=zero_redundancy):
                return 1 if zero_redundancy else 0
            case FlatSharding(sharding_strategy="NO_SHARD"):
                return 0
            case _:
                return 3 if self.is_resharded else 2
