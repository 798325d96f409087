"""Activation memory of transformer layers.

May import engine.costs.arguments. s sequence length, b microbatch, h hidden size, a heads,
t tensor-parallel ranks.
"""

from fractions import Fraction
from typing import Literal, get_args

from engine.costs.arguments import require_at_least, require_one_of

Recompute = Literal["none", "selective", "full"]


def transformer_layer_bytes(
    *,
    sequence_length: int,
    batch_size: int,
    hidden_size: int,
    num_heads: int,
    recompute: Recompute = "none",
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
) -> Fraction:
    """Bytes that one layer keeps for backward in 16-bit precision, with 1-byte dropout masks.

    Without parallelism s b h (34 + 5 a s / h); selective recompute drops the attention core's
    5 a s / h; full recompute keeps the layer's input only, 2 s b h.
    Raises: ValueError when a size is below 1 or recompute is unknown.
    Source: arXiv 2205.05198, equations 1, 2 and 4 and table 2.
    """
    s, b, h, a, t = sequence_length, batch_size, hidden_size, num_heads, tensor_parallel
    require_at_least("sequence_length", s, 1)
    require_at_least("batch_size", b, 1)
    require_at_least("hidden_size", h, 1)
    require_at_least("num_heads", a, 1)
    require_at_least("tensor_parallel", t, 1)
    require_one_of("recompute", recompute, get_args(Recompute))
    if recompute == "full":
        return Fraction(2 * s * b * h)
    attention = 0 if recompute == "selective" else Fraction(5 * a * s, h)
    split = 34 if sequence_parallel else 24
    whole = 34 - split
    return s * b * h * (whole + Fraction(split + attention) / t)
