"""Model states per rank under the ZeRO stages, as the paper counts them: no padding, no buffers.

May import the standard library only. Psi is num_parameters, N is num_ranks.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from engine.costs.arguments import require_at_least, require_one_of
from engine.costs.precision import Precision

Stage = Literal[0, 1, 2, 3]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStates:
    """Bytes of model states on one rank; fractions, since Psi / N need not be whole."""

    parameter_bytes: Fraction
    gradient_bytes: Fraction
    optimizer_bytes: Fraction

    @property
    def total_bytes(self) -> Fraction:
        """All three together."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes


def model_states(
    *, num_parameters: int, num_ranks: int, stage: Stage, precision: Precision
) -> ModelStates:
    """Bytes per rank: stage 1 shards the optimizer, 2 also gradients, 3 also parameters.

    Stage 0 is data parallelism, which shards nothing.
    Raises: ValueError when num_parameters is negative, num_ranks below 1 or stage not 0 to 3.
    Source: arXiv 1910.02054, section 5 and figure 1: (4 + K) Psi, 4 Psi + K Psi / N,
    2 Psi + (2 + K) Psi / N, (4 + K) Psi / N.
    """
    require_at_least("num_parameters", num_parameters, 0)
    require_at_least("num_ranks", num_ranks, 1)
    require_one_of("stage", stage, get_args(Stage))
    whole, shard = Fraction(num_parameters), Fraction(num_parameters, num_ranks)
    return ModelStates(
        parameter_bytes=precision.parameter_bytes * (shard if stage >= 3 else whole),
        gradient_bytes=precision.gradient_bytes * (shard if stage >= 2 else whole),
        optimizer_bytes=precision.optimizer_bytes * (shard if stage >= 1 else whole),
    )
