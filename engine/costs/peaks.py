"""The most that one rank holds of model states and of buffers for them within a step.

May import engine.costs.{arguments,precision}. Activations and what an optimizer allocates within
its own step() are left out: they depend on the model and on the optimizer's implementation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from engine.costs.arguments import require_at_least, require_divisor
from engine.costs.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakBytes:
    """What is held at the highest moment of a training step after the first one."""

    sharded_bytes: Fraction
    """Own parts of parameters and optimizer states, and of gradients that are reduced already."""
    whole_parameter_bytes: Fraction
    """Gathered parameters."""
    whole_gradient_bytes: Fraction
    """Gradients not reduced yet."""
    buffer_bytes: Fraction
    """What collectives read from or write to, apart from the above."""

    @property
    def total_bytes(self) -> Fraction:
        """All together."""
        return (
            self.sharded_bytes
            + self.whole_parameter_bytes
            + self.whole_gradient_bytes
            + self.buffer_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Elements of each wrapped unit in forward order, over how many ranks, in which precision.

    Raises: ValueError when there is no unit, one is negative, or num_ranks is below 1.
    """

    numels: Sequence[int]
    root_numel: int = 0
    """What the root itself owns; it stays whole from its forward to the end of backward."""
    num_ranks: int
    precision: Precision

    def __post_init__(self) -> None:
        require_at_least("numels", len(self.numels), 1)
        require_at_least("numels", min(self.numels), 0)
        require_at_least("root_numel", self.root_numel, 0)
        require_at_least("num_ranks", self.num_ranks, 1)

    def parameters(self, numel: int) -> Fraction:
        """Bytes of so many whole parameters."""
        return Fraction(numel * self.precision.parameter_bytes)

    def gradients(self, numel: int) -> Fraction:
        """Bytes of so many whole gradients."""
        return Fraction(numel * self.precision.gradient_bytes)

    def sharded(self, numel_reduced: int) -> Fraction:
        """Bytes of what is cut: all parameters and states, gradients of so many parameters."""
        psi = sum(self.numels) + self.root_numel
        per_parameter = self.precision.parameter_bytes + self.precision.optimizer_bytes
        reduced = numel_reduced * self.precision.gradient_bytes
        return Fraction(psi * per_parameter + reduced, self.num_ranks)

    def at(self, index: int) -> int:
        """Elements of a unit, 0 before the first and after the last one."""
        return self.numels[index] if 0 <= index < len(self.numels) else 0


def ddp_peak(
    *,
    num_parameters: int,
    num_ranks: int,
    precision: Precision,
    gradient_as_bucket_view: bool = False,
    zero_redundancy: bool = False,
) -> PeakBytes:
    """DistributedDataParallel: everything whole, and a copy of all gradients in buckets.

    With gradient_as_bucket_view the gradients are the buckets. ZeroRedundancyOptimizer cuts the
    optimizer's states only.
    Raises: ValueError when num_parameters is negative or num_ranks below 1.
    Source: arXiv 2006.15704, section 4.2; torch.nn.parallel.DistributedDataParallel,
    gradient_as_bucket_view; arXiv 1910.02054, section 5.1.
    """
    require_at_least("num_parameters", num_parameters, 0)
    require_at_least("num_ranks", num_ranks, 1)
    gradients = Fraction(num_parameters * precision.gradient_bytes)
    states = Fraction(
        num_parameters * precision.optimizer_bytes, num_ranks if zero_redundancy else 1
    )
    return PeakBytes(
        sharded_bytes=states,
        whole_parameter_bytes=Fraction(num_parameters * precision.parameter_bytes),
        whole_gradient_bytes=gradients,
        buffer_bytes=Fraction(0) if gradient_as_bucket_view else gradients,
    )


def fsdp1_peak(units: Units, *, resharded: bool) -> PeakBytes:
    """FullyShardedDataParallel: the highest moment of backward.

    When the gradient of a unit is complete, the rank holds it twice (per parameter and flat), the
    unit itself, and either the unit before it, prefetched (FULL_SHARD), or all before it
    (SHARD_GRAD_OP). In short Psi / N + the largest units, as the paper puts it.
    Source: arXiv 2304.11277, section 3.2.1; torch/distributed/fsdp/_runtime_utils.py,
    _post_backward_hook and _prefetch_handle; torch/distributed/fsdp/_flat_param.py.
    """
    return _highest(_fsdp1_moment(units, i, resharded) for i in range(len(units.numels)))


def fsdp2_peak(
    units: Units, *, resharded: bool, post_forward_ranks: int | None = None
) -> PeakBytes:
    """fully_shard: the highest moment of forward or backward.

    Forward: while a unit is copied out of its all_gather's buffer, the buffer of the unit before
    is held too. Backward: when the gradients of a unit are complete, the rank holds them, the unit,
    the buffer of the next unit's all_gather, if it resharded, and what the reduce_scatter of the
    unit before reads. When reshard_after_forward is a number, post_forward_ranks, units between
    their forward and backward are held in parts of that many ranks.
    Raises: ValueError when post_forward_ranks does not divide the number of ranks.
    Source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, wait_for_unshard, reshard,
    post_backward; torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py.
    """
    if post_forward_ranks is not None:
        require_divisor("post_forward_ranks", post_forward_ranks, "num_ranks", units.num_ranks)
    moments: list[PeakBytes] = []
    for index in range(len(units.numels)):
        passed = sum(units.numels[:index])
        kept = Fraction(0 if resharded else passed)
        if resharded and post_forward_ranks is not None:
            kept = Fraction(passed, post_forward_ranks)
        whole = units.precision.parameter_bytes * (units.root_numel + units.at(index) + kept)
        moments.append(_fsdp2_forward(units, index, whole))
        moments.append(_fsdp2_backward(units, index, whole, resharded))
    return _highest(moments)


def _highest(moments: Iterable[PeakBytes]) -> PeakBytes:
    return max(moments, key=lambda moment: moment.total_bytes)


def _fsdp1_moment(units: Units, index: int, resharded: bool) -> PeakBytes:
    before = units.at(index - 1) if resharded else sum(units.numels[:index])
    return PeakBytes(
        sharded_bytes=units.sharded(sum(units.numels[index + 1 :])),
        whole_parameter_bytes=units.parameters(units.root_numel + units.at(index) + before),
        whole_gradient_bytes=2 * units.gradients(units.at(index)),
        buffer_bytes=Fraction(0),
    )


def _fsdp2_forward(units: Units, index: int, whole_bytes: Fraction) -> PeakBytes:
    before = units.at(index - 1) if index else units.root_numel
    return PeakBytes(
        sharded_bytes=units.sharded(0),
        whole_parameter_bytes=whole_bytes,
        whole_gradient_bytes=Fraction(0),
        buffer_bytes=units.parameters(units.at(index) + before),
    )


def _fsdp2_backward(units: Units, index: int, whole_bytes: Fraction, resharded: bool) -> PeakBytes:
    prefetched = units.parameters(units.at(index - 1) if resharded else 0)
    return PeakBytes(
        sharded_bytes=units.sharded(sum(units.numels[index + 1 :])),
        whole_parameter_bytes=whole_bytes,
        whole_gradient_bytes=units.gradients(units.at(index)),
        buffer_bytes=prefetched + units.gradients(units.at(index + 1)),
    )
