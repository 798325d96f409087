"""Watches the storages of this rank's tensors from their first sight to their end.

May import torch and the ledger. A storage is followed by a weak reference, so nothing of the
learner's is kept alive. Only storages on the traced device count; a subclass that wraps other
tensors (DTensor) has none of its own.
"""

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor, UntypedStorage

from engine.facts import AllocationAction, Category
from engine.tracers.compiling import never_compiled
from engine.tracers.memory.ledger import Entry, Ledger, Place

TracedDevice = Literal["cpu", "cuda", "simulated"]
"""Which tensors count: those with data on the device, or fake ones with their nominal size."""
OnChange = Callable[[AllocationAction, Entry], None]


class Watched(weakref.ref[UntypedStorage]):
    """A weak reference that knows the ledger's entry of its storage."""

    __slots__ = ("address", "entry")
    address: int
    entry: Entry


class Storages:
    """The storages seen so far, by the address of what torch keeps of each."""

    def __init__(
        self,
        ledger: Ledger,
        device: TracedDevice,
        first_category: Callable[[Sequence[object]], Category],
        place: Callable[[object], Place],
        on_change: OnChange | None,
    ) -> None:
        self._ledger = ledger
        self._first_category = first_category
        self._place = place
        self._on_change = on_change
        self._watched: dict[int, Watched] = {}
        self._counts = _COUNTS[device]

    def takes(self, types: Iterable[type[Tensor]]) -> bool:
        """Whether an op on these subclasses is to be run as it is.

        Fake tensors go to their own mode below; one that wraps other tensors comes again as ops
        on those.
        """
        for cls in types:
            if cls.__torch_dispatch__ is not _PLAIN and not issubclass(cls, _fake_tensor()):
                return False
        return True

    def entry_of(self, tensor: Tensor) -> Entry | None:
        """The entry of a tensor's storage, None for one that was never seen or does not count."""
        if not self._counts(tensor):
            return None
        watched = self._watched.get(Tensor.untyped_storage(tensor)._cdata)
        return watched.entry if watched is not None else None

    def see(
        self,
        tensor: Tensor,
        category: Category | None,
        op: object = None,
        args: Sequence[object] = (),
    ) -> Entry | None:
        """Book the storage of a tensor if it is new, made by op(*args) if that is known.

        Without a category it gets the one that place and arguments suggest.
        """
        if not self._counts(tensor):
            return None
        storage = Tensor.untyped_storage(tensor)
        address = storage._cdata
        known = self._watched.get(address)
        if known is not None and known() is not None:
            return known.entry
        place = self._place(op)
        entry = self._ledger.add(
            storage.nbytes(),
            category or self._first_category(args),
            place,
            tuple(tensor.shape),
            tensor.dtype,
        )
        watched = Watched(storage, self._ended)
        watched.address, watched.entry = address, entry
        self._watched[address] = watched
        if self._on_change is not None:
            self._on_change("allocate", entry)
        return entry

    def classify(self, tensor: Tensor, category: Category) -> None:
        """Say what the storage of a tensor is for, if it has been seen."""
        entry = self.entry_of(tensor)
        is_news = entry is not None and self._ledger.classify(entry, category)
        if entry is not None and is_news and self._on_change is not None:
            self._on_change("classify", entry)

    def measure(self, storage: UntypedStorage) -> None:
        """Take in that a storage may have another size now."""
        watched = self._watched.get(storage._cdata)
        if watched is None:
            return
        num_bytes = storage.nbytes()
        entry = watched.entry
        if num_bytes != entry.num_bytes:
            grows = num_bytes > entry.num_bytes
            place = self._place(entry.place.op) if grows else None
            self._ledger.resize(entry, num_bytes, place)
            if self._on_change is not None:
                self._on_change("resize", entry)

    def _ended(self, watched: weakref.ref[UntypedStorage]) -> None:
        assert isinstance(watched, Watched), "only such references are made here"
        # The address may belong to another storage by now.
        if self._watched.get(watched.address) is watched:
            del self._watched[watched.address]
        self._ledger.free(watched.entry)
        if self._on_change is not None:
            self._on_change("free", watched.entry)


def _on_cpu(tensor: Tensor) -> bool:
    return (
        tensor.is_cpu
        and type(tensor).__torch_dispatch__ is _PLAIN
        and tensor.layout is torch.strided
        and not tensor.is_nested
    )


def _on_cuda(tensor: Tensor) -> bool:
    return (
        tensor.is_cuda
        and type(tensor).__torch_dispatch__ is _PLAIN
        and tensor.layout is torch.strided
        and not tensor.is_nested
    )


def _simulated(tensor: Tensor) -> bool:
    mode = getattr(tensor, "fake_mode", None)
    if mode is not None:
        # Other fake tensors only answer somebody's question, and a real rank has them as well.
        return getattr(mode, "stands_for_memory", False) and tensor.device.type != "meta"
    return _on_cpu(tensor)  # some of torch's own bookkeeping is real in a simulation


@functools.cache
def _fake_tensor() -> type[Tensor]:
    from torch._subclasses.fake_tensor import FakeTensor  # loaded only where it is used

    return FakeTensor


_PLAIN = Tensor.__torch_dispatch__
"""What a class has whose tensors hold data, as parameters do; others handle ops themselves."""
_COUNTS: dict[TracedDevice, Callable[[Tensor], bool]] = {
    "cpu": _on_cpu,
    "cuda": _on_cuda,
    "simulated": _simulated,
}


def watch_resizes(on_resize: Callable[[UntypedStorage], None]) -> None:
    """Call on_resize after each resize of a storage from Python, which no op tells of (FSDP)."""
    stock = UntypedStorage.resize_

    @never_compiled
    def resize_(self: UntypedStorage, size: int) -> None:
        try:
            stock(self, size)
        finally:
            on_resize(self)

    UntypedStorage.resize_ = resize_  # type: ignore[method-assign, assignment]
