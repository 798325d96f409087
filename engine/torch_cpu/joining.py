"""A rank may not end while a peer still connects to it. May import torch and engine.torch_cpu.

Gloo's group is there for a rank as soon as that rank's own connections are; its peers may still be
at it, and fail when one of them finds the other end closed. Under torchrun the interpreter's slow
exit hides that. Ranks here end within a millisecond, so they wait for it instead.
"""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ParamSpec, TypeVar

import torch.distributed as dist
from torch._C._distributed_c10d import Store
from torch.distributed import distributed_c10d

P = ParamSpec("P")
R = TypeVar("R")
_LIMIT = timedelta(seconds=1)
"""A peer that dies while it connects never says that it is done."""


@dataclass(frozen=True, slots=True)
class _Joined:
    store: Store
    all_in: str
    """The key that the last member sets."""


class JoiningGroups:
    """The groups that this rank has joined, and whether all of their members have."""

    def __init__(self) -> None:
        self._joined: list[_Joined] = []
        self._is_counting = False

    def begin(self) -> None:
        """Count from now on; the warm parent's own rehearsals have no peers."""
        self._is_counting = True

    def install(self) -> None:
        """Note every group of more than one rank once it is made."""
        stock = distributed_c10d._new_process_group_helper
        distributed_c10d._new_process_group_helper = self._noting(stock)

    def await_peers(self) -> None:
        """Return once every member of every group that this rank has joined has joined too."""
        for group in self._joined:
            with contextlib.suppress(RuntimeError):  # the store has gone, or a peer never came
                group.store.wait([group.all_in], _LIMIT)
        self._joined.clear()

    def _noting(self, stock: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(stock)
        def helper(*args: P.args, **kwargs: P.kwargs) -> R:
            made = stock(*args, **kwargs)
            match made:
                case (dist.ProcessGroup() as group, Store() as store) if self._is_counting:
                    self._note(group.size(), store)
            return made

        return helper

    def _note(self, size: int, store: Store) -> None:
        if size == 1:
            return
        with contextlib.suppress(RuntimeError):  # the group is made, whatever its store says now
            number = store.add("academy/in", 1)
            # A group that is made again after its end has the keys of the first.
            group = _Joined(store, f"academy/all-in/{(number - 1) // size}")
            if number % size == 0:
                store.set(group.all_in, "1")
            self._joined.append(group)
