"""What stock PyTorch lacks on CPU ranks: SyncBatchNorm's kernels, and adaptations that say so.

May import torch, engine.devices and engine.events. `prepare` belongs in the warm parent: it starts
no thread, and what it touches stays shared with every rank that forks. `Adaptations.begin` belongs
in each rank, before the learner's program runs.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from engine.devices import RunsOn
from engine.reports import NoteReport
from engine.torch_cpu.adaptations import adapt_ddp, adapt_sync_batch_norm
from engine.torch_cpu.fsdp import adapt_fsdp
from engine.torch_cpu.groups import KeptGroups, adapt_backends
from engine.torch_cpu.joining import JoiningGroups
from engine.torch_cpu.kernels import Kernels, register_kernels
from engine.torch_cpu.notes import Notes

__all__ = ["Adaptations", "KeptGroups", "prepare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptations:
    """What `prepare` has put in place, still silent."""

    kept: KeptGroups
    joining: JoiningGroups
    notes: Notes
    kernels: Kernels | None
    """None for ranks on GPUs: there nothing is adapted."""

    def begin(
        self, report: Callable[[NoteReport], None], line: Callable[[], int | None]
    ) -> KeptGroups:
        """Report each adaptation that is used from now on, once.

        The destroyed groups that the answer keeps alive must outlive the program: leave with
        os._exit.
        """
        self.notes.begin(report, line)
        self.kept.begin()
        self.joining.begin()
        return self.kept


def prepare(runs_on: RunsOn = "cpu") -> Adaptations:
    """Adapt this process and all that fork from it for what its ranks run on.

    On GPUs stock PyTorch lacks nothing. That this machine may have some changes nothing for ranks
    on CPU.
    """
    kept, joining, notes = KeptGroups(), JoiningGroups(), Notes()
    kernels = None
    if runs_on == "cpu":
        kernels = register_kernels()
        kernels.on_sync = functools.partial(notes.add, "syncbn-on-cpu")
        adapt_sync_batch_norm(notes)
        adapt_ddp(notes)
        adapt_fsdp(notes)
        adapt_backends(notes)
        joining.install()
    kept.install()  # last: it must see every DDP, also where an adaptation stands in
    return Adaptations(kept=kept, joining=joining, notes=notes, kernels=kernels)
