"""What collectives put on the wire when they run as rings.

May import engine.costs.arguments.
"""

from fractions import Fraction
from typing import Literal, get_args

from engine.costs.arguments import require_at_least, require_one_of

RingOp = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"]


def sent_bytes(*, op: RingOp, num_bytes: int, num_ranks: int) -> Fraction:
    """Bytes that the busiest rank of a ring sends.

    num_bytes is the whole tensor: the output of an all_gather, the input of a reduce_scatter or
    all_to_all. all_reduce 2 (N - 1) / N, all_gather, reduce_scatter and all_to_all (N - 1) / N,
    broadcast and reduce 1; one rank alone sends nothing.
    Raises: ValueError when op is unknown, num_bytes negative or num_ranks below 1.
    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, 2009; the bus bandwidth factors of nccl-tests, doc/PERFORMANCE.md.
    """
    require_one_of("op", op, get_args(RingOp))
    require_at_least("num_bytes", num_bytes, 0)
    require_at_least("num_ranks", num_ranks, 1)
    if num_ranks == 1:
        return Fraction(0)
    if op in ("broadcast", "reduce"):
        return Fraction(num_bytes)
    share = Fraction(num_ranks - 1, num_ranks)
    return (2 * share if op == "all_reduce" else share) * num_bytes
