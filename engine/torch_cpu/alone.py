"""A process group of one rank where a rank gets no sockets. May import torch.

gloo makes a listening socket for every group and never uses it where there is no peer. So a fenced
rank makes one such device while it still may, takes the socket away from it, and gives it to all
of its groups; what meets in a store on the network otherwise meets in memory. All else is stock.
"""

import os
import stat
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlparse

from torch._C._distributed_c10d import HashStore, Store
from torch.distributed import distributed_c10d
from torch.distributed.distributed_c10d import ProcessGroupGloo
from torch.distributed.rendezvous import _rendezvous_handlers

_FIRST_FREE_FD, _NUM_FDS = 6, 600


def look_at_interfaces() -> None:
    """Have gloo read which network cards there are, once for this process and its forks.

    To be called while the machine's devices can be seen; leaves no thread and no socket.
    """
    ProcessGroupGloo.create_device(hostname="127.0.0.1", lazy_init=True)


def allow_groups_of_one() -> None:
    """Let this process make gloo groups of one rank from now on, also without sockets.

    To be called while it may still bind a port; starts the one thread that gloo's device has.
    Raises: OSError.
    """
    try:
        device = ProcessGroupGloo.create_device(hostname="127.0.0.1", lazy_init=True)
    except RuntimeError as error:
        raise OSError(f"gloo has no device: {error}") from None
    _take_sockets_away()

    class GlooAlone(ProcessGroupGloo):
        """The stock group on the device that is there already; it outlives every group."""

        def __init__(
            self, store: Store, rank: int, size: int, timeout: timedelta | None = None
        ) -> None:
            options = ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # not in its stub
            options._devices, options._threads = [device], 2
            if timeout is not None:
                options._timeout = timeout
            super().__init__(store, rank, size, options)

    distributed_c10d.ProcessGroupGloo = GlooAlone  # type: ignore[misc]
    _rendezvous_handlers["env"] = _meet_in_memory


def _take_sockets_away() -> None:
    """Close every socket; its number stays taken, so that the device never meets another file."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor in range(_FIRST_FREE_FD, _NUM_FDS):
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # not open
            continue
        if stat.S_ISSOCK(mode):
            os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def _meet_in_memory(
    url: str, timeout: timedelta | None = None, **_: object
) -> Iterator[tuple[Store, int, int]]:
    """Stands in for the rendezvous by environment variables: same rank, same size."""
    query = parse_qs(urlparse(url).query)
    rank = query.get("rank", [os.environ.get("RANK", "0")])[0]
    size = query.get("world_size", [os.environ.get("WORLD_SIZE", "1")])[0]
    store = HashStore()
    if timeout is not None:
        store.set_timeout(timeout)
    yield store, int(rank), int(size)
    raise RuntimeError("a process group by environment variables cannot be made anew")
