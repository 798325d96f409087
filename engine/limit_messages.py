"""English sentences for limits of a run. Standard library only.

A part of `engine.messages`: each names the limit, its value, and what to do.
"""

from collections.abc import Mapping
from types import MappingProxyType

LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "wall-limit": (
            "The run reached its limit of {limit_s} s and was stopped. At that moment: {where}. "
            "Train fewer steps or a smaller model, and look for a loop that never ends."
        ),
        "cpu-limit": (
            "Rank {rank} used its limit of {limit_s} s of CPU time and was stopped. Train fewer "
            "steps or a smaller model, and look for a loop that never ends."
        ),
        "cpu-limit-together": (
            "The run's processes together used the limit of {limit_s} s of CPU time, and it was "
            "stopped. Start fewer processes and threads, or train fewer steps."
        ),
        "memory-limit": (
            "The ranks together held more than the limit of {limit_mib} MiB; the run was stopped. "
            "Use a smaller model, batch or number of ranks."
        ),
        "out-of-memory": (
            "Rank {rank} asked for more memory than the limit of {limit_mib} MiB allows. Use a "
            "smaller model, batch or number of ranks."
        ),
        "output-limit": (
            "The ranks wrote more than {limit_mib} MiB of output; the run was stopped. What came "
            "before is kept. Print less, or only on rank 0."
        ),
        "trace-limit": (
            "The run produced more trace than its limit of {limit_mib} MiB or {limit_events} "
            "events and was stopped. What came before is kept. Train fewer steps."
        ),
        "process-limit": (
            "Line {line}: rank {rank} could not start another process or thread. All ranks of a "
            "run may have {limit} of them together. Start fewer, wait for those that have done "
            "their work, and make process groups once: each takes threads of its own."
        ),
        "descriptor-limit": (
            "Line {line}: rank {rank} could not open another file or socket. A process may have "
            "{limit} open at a time. Close what is no longer used (`with open(...)`), and make "
            "process groups once: each opens sockets."
        ),
        "file-size-limit": (
            "Line {line}: rank {rank} wrote a file beyond the limit of {limit_mib} MiB. Save "
            "less, or in several files."
        ),
        "scratch-full": (
            "Line {line}: there was no room left for what rank {rank} wrote. All files of a run "
            "may have {limit_mib} MiB together, in its folder, /tmp and /dev/shm. Remove what is "
            "no longer needed, and save a smaller state or on fewer ranks."
        ),
        "scratch-files-full": (
            "Line {line}: rank {rank} could not make another file. A run may have {limit} files "
            "and folders together, in its folder, /tmp and /dev/shm. Write fewer, larger files, "
            "and remove what is no longer needed."
        ),
    }
)
