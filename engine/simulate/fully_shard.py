"""fully_shard for many ranks: only the shard that this rank holds is cut out of a parameter.

May import torch. Stock code cuts a parameter into one view per rank and takes one of them; with a
thousand ranks and a few hundred parameters nearly all of a simulation's time would go there.
"""

from collections.abc import Sequence
from typing import overload

from torch import Tensor
from torch.distributed.fsdp._fully_shard import _fsdp_common, _fsdp_param

_FEW = 16


class _Shards(Sequence[Tensor]):
    """What `_chunk_with_empty` returns, each view made when it is asked for."""

    def __init__(self, tensor: Tensor, num_shards: int, dim: int) -> None:
        self._tensor = tensor
        self._num_shards = num_shards
        self._dim = dim
        self._length = -(-tensor.size(dim) // num_shards)

    def __len__(self) -> int:
        return self._num_shards

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tensor]: ...
    def __getitem__(self, index: int | slice) -> Tensor | list[Tensor]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start = range(self._num_shards)[index] * self._length
        left = self._tensor.size(self._dim) - start
        if left <= 0:  # fewer rows than ranks
            return self._tensor.new_empty(0)
        return self._tensor.narrow(self._dim, start, min(self._length, left))


def adapt_fully_shard() -> None:
    """Cut out one shard instead of all, in this process and for good."""
    stock = _fsdp_common._chunk_with_empty

    def chunk_with_empty(tensor: Tensor, num_chunks: int, dim: int) -> Sequence[Tensor]:
        if num_chunks <= _FEW or tensor.size(dim) == 0:
            return stock(tensor, num_chunks, dim)
        return _Shards(tensor, num_chunks, dim)

    setattr(_fsdp_param, stock.__name__, chunk_with_empty)
