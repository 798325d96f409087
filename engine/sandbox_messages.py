"""English sentences of what the isolation of a machine cannot hold. Standard library only.

A part of `engine.messages`.
"""

from collections.abc import Mapping
from types import MappingProxyType

SANDBOX: Mapping[str, str] = MappingProxyType(
    {
        "fenced-one-rank": (
            "Programs of one rank only can be isolated here, and this one asks for {ranks} ranks. "
            "Run it with 1 rank, or ask whoever looks after the server for a stronger isolation: "
            "{remedy}"
        ),
        "fenced-no-sockets": (
            "Line {line}, rank {rank}: the program asked for a socket, and on this machine "
            "programs get none, not even between their own threads (tier fenced). A process group "
            "of one rank works without; `asyncio` and anything that goes over the network do not."
        ),
        "fenced-no-processes": (
            "Line {line}, rank {rank}: the program asked for another process, and on this machine "
            "a program is a single one (tier fenced). Threads work; with a DataLoader leave "
            "`num_workers` at 0."
        ),
        "scratch-limit": (
            "The program's files took more than the limit of {limit_mib} MiB or {limit_files} "
            "files; the run was stopped. Write less, or remove what is not needed any more."
        ),
    }
)
