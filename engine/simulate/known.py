"""The values that a simulation does know: small tensors that depend on nothing simulated.

May import torch. A mesh of ranks, an optimizer's step count, a sampler's permutation, a list of
drop rates are read by programs and by torch itself while a model is built; they come from numbers
in the program, so they are computed as well as simulated. Whatever mixes with a simulated tensor
or leaves a collective is unknown from then on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

MAX_NUM_INTEGERS = 1 << 17
MAX_NUM_FLOATS = 1 << 12
_FEW_PAIRS = 4096


@dataclass(frozen=True, slots=True)
class _Pair:
    """The storage of a simulated tensor and the one that holds its values."""

    simulated: StorageWeakRef
    values: torch.UntypedStorage


class KnownValues:
    """Values by storage, so that views and in-place changes need no care of their own."""

    def __init__(self) -> None:
        self._pairs: dict[int, _Pair] = {}
        self._num_checked = _FEW_PAIRS

    def of(self, tensor: Tensor) -> Tensor | None:
        """A real tensor with the values of a simulated one, None if they are not known."""
        if tensor.layout != torch.strided:
            return None
        address = tensor.untyped_storage()._cdata
        pair = self._pairs.get(address)
        if pair is None:
            return None
        if _has_expired(pair):  # its address may be another's
            del self._pairs[address]
            return None
        found = torch.empty(0, dtype=tensor.dtype)
        found.set_(pair.values, tensor.storage_offset(), tensor.size(), tensor.stride())
        found = torch._conj(found) if tensor.is_conj() else found
        return torch._neg_view(found) if tensor.is_neg() else found

    def remember(self, tensor: Tensor, values: Tensor) -> None:
        """Know the values of a simulated tensor, unless they are many or laid out otherwise."""
        if not isinstance(values, Tensor) or values.layout != torch.strided:
            return
        limit = MAX_NUM_FLOATS if values.is_floating_point() else MAX_NUM_INTEGERS
        if values.numel() > limit or values.stride() != tensor.stride():
            return
        if values.storage_offset() != tensor.storage_offset():
            return
        storage = tensor.untyped_storage()
        if values.untyped_storage().nbytes() < storage.nbytes():
            return
        self.pair(storage, values.untyped_storage())

    def pair(self, simulated: torch.UntypedStorage, values: torch.UntypedStorage) -> None:
        """Know the values of everything that lies in a simulated storage."""
        if len(self._pairs) >= self._num_checked:
            self._drop_freed()
        self._pairs[simulated._cdata] = _pair(simulated, values)

    def forget(self, tensors: Iterable[Tensor]) -> None:
        """The values of these, and of all that share their storage, are unknown from now on."""
        for tensor in tensors:
            if self._pairs and tensor.layout == torch.strided:
                self._pairs.pop(tensor.untyped_storage()._cdata, None)

    def _drop_freed(self) -> None:
        self._pairs = {k: p for k, p in self._pairs.items() if not _has_expired(p)}
        self._num_checked = max(_FEW_PAIRS, 2 * len(self._pairs))


def _pair(simulated: torch.UntypedStorage, values: torch.UntypedStorage) -> _Pair:
    return _Pair(StorageWeakRef(simulated), values)  # type: ignore[no-untyped-call]


def _has_expired(pair: _Pair) -> bool:
    return bool(pair.simulated.expired())  # type: ignore[no-untyped-call]
