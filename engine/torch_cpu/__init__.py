"""What stock PyTorch lacks on CPU ranks: SyncBatchNorm's kernels, and adaptations that say so.

May import torch and engine.events. `register_kernels` belongs in the warm parent (it starts no
thread); `install` belongs in each rank, before the learner's program runs.
"""

import functools
from collections.abc import Callable

import torch

from engine.events import NoteReport
from engine.torch_cpu.adaptations import adapt_ddp, adapt_fsdp, adapt_sync_batch_norm
from engine.torch_cpu.groups import KeptGroups, adapt_backends
from engine.torch_cpu.kernels import Kernels, register_kernels
from engine.torch_cpu.notes import Notes

__all__ = ["KeptGroups", "Kernels", "install", "register_kernels"]


def install(
    report: Callable[[NoteReport], None],
    line: Callable[[], int | None],
    kernels: Kernels | None = None,
) -> KeptGroups:
    """Adapt this process for stock PyTorch on CPU; each adaptation used is reported once.

    kernels is what `register_kernels` returned in the warm parent, None to register them here.
    Where CUDA is available nothing is adapted. The destroyed groups that the answer keeps alive
    must outlive the program: leave with os._exit.
    """
    kept = KeptGroups()
    kept.install()
    if torch.cuda.is_available():
        return kept
    notes = Notes(report, line)
    kernels = kernels or register_kernels()
    kernels.on_sync = functools.partial(notes.add, "syncbn-on-cpu")
    adapt_sync_batch_norm(notes)
    adapt_ddp(notes)
    adapt_fsdp(notes)
    adapt_backends(notes)
    return kept
