"""What a rank holds, by what it is for: reported at boundaries, at the peak, or at every change.

May import engine.facts, engine.reports, engine.program and torch. `prepare_memory` belongs in the
warm parent; `MemoryTracer.begin` in each rank, on the thread that runs the learner's program.
Storages are seen when an op of that thread makes them, or when a module or optimizer owns them.
An optimizer's step is the same each time and made of many small ops: at the default level the
temporaries inside it are watched at steps 1, 2, 4, 8 ..., and what it leaves behind at all of them.
Storages of parameters already met are looked up again at forwards 1, 2, 4, 8 ...
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor, UntypedStorage, nn
from torch.optim.optimizer import Optimizer

from engine.facts import AllocationAction, Args, Category, Phase
from engine.program import Detail
from engine.reports import AllocationReport, MemoryReport, NoteReport, PeakReport, Report
from engine.tracers.memory.allocations import MAX_OPS, Allocations
from engine.tracers.memory.hooks import MemoryHooks, prepare_memory
from engine.tracers.memory.ledger import Entry, Ledger, dtype_name
from engine.tracers.memory.owners import Owners
from engine.tracers.memory.storages import Storages, TracedDevice
from engine.tracers.memory.whereabouts import Whereabouts
from engine.tracers.position import Position
from engine.tracers.unnoticed import unnoticed

__all__ = ["MemoryHooks", "MemoryTracer", "TracedDevice", "prepare_memory"]

MAX_ALLOCATIONS = 8_000
"""Changes that a rank reports at the detailed level: eight ranks stay within the run's limit."""
MAX_HOLDINGS = 24
_BURST, _PER_S = 250.0, 20.0
"""Boundaries reported at once, and per second after that."""
_PEAK_GROWTH = 1.25
"""A peak is reported before the end when it has grown by so much: a rank may be killed."""


class MemoryTracer:
    """The memory of one rank."""

    def __init__(
        self,
        report: Callable[[Report], None],
        position: Position,
        *,
        device: TracedDevice,
        detail: Detail,
    ) -> None:
        self._report = report
        self._position = position
        self._where = Whereabouts(position)
        self._device = device
        self._ledger = Ledger()
        on_change = self._changed if detail == "allocations" else None
        self._storages = Storages(
            self._ledger, device, self._where.category, self._where.place, on_change
        )
        self._owners = Owners(self._storages)
        self._mode = Allocations(self._storages, self._too_many_ops)
        self._detail = detail
        self._num_changes = 0
        self._num_forwards = 0
        self._is_cut = False
        self._tokens = _BURST
        self._refilled_ns = time.monotonic_ns()
        self._last_phase: Phase | None = None
        self._last_sums: tuple[int, ...] = ()
        self._reported_peak = 0

    def begin(self, hooks: MemoryHooks) -> None:
        """Trace this thread from now on."""
        hooks.tracer = self
        self._mode.__enter__()  # type: ignore[no-untyped-call]  # torch has no type for it

    def leave(self, hooks: MemoryHooks) -> None:
        """Trace no more."""
        hooks.tracer = None
        self._mode.pause()

    # ------------------------------------------------------------------ what others tell
    @unnoticed
    def resized(self, storage: UntypedStorage) -> None:
        """A storage was resized from Python."""
        self._storages.measure(storage)

    @unnoticed
    def registered(self, tensor: Tensor, category: Category) -> None:
        """A module has got a parameter or a buffer."""
        self._owners.registered(tensor, category)

    # ------------------------------------------------------------------ boundaries
    @unnoticed
    def module_entered(self, module: nn.Module, is_outermost: bool) -> None:
        """A module's forward begins."""
        self._where.changed()
        if is_outermost:
            self._mode.resume()  # a step that raised has not done so
            self._num_forwards += 1
            if self._num_forwards & (self._num_forwards - 1):
                self._owners.learn_again(module)
            else:
                self._owners.learn_tree(module)
            self._sample()
        else:
            self._owners.learn(module)

    @unnoticed
    def module_left(self, module: nn.Module) -> None:
        """A module's forward is over; the module is still the one that runs."""
        self._where.changed()
        if self._position.is_outermost(module):
            self._owners.learn_again(module)  # by now FSDP2 may have swapped what is below it
        else:
            self._owners.learn(module)
        self._sample()
        self._where.changed()  # whose forward it was is over when this returns

    @unnoticed
    def backward_reached(self, is_first: bool) -> None:
        """The backward of another module begins."""
        self._where.changed()
        if self._mode.has_moved:  # what DDP and FSDP leave in .grad comes out of a collective
            self._mode.has_moved = False
            self._owners.learn_gradients()
        self._sample()

    @unnoticed
    def backward_ended(self) -> None:
        """All gradients are there."""
        self._where.changed()
        self._owners.learn_gradients()
        self._sample()

    @unnoticed
    def step_began(self, optimizer: Optimizer) -> None:
        """An optimizer's step begins."""
        self._where.changed()
        self._owners.learn_optimized(optimizer)
        self._owners.learn_gradients()
        self._sample()
        if self._detail == "summary" and not self._owners.is_due(optimizer):
            self._mode.pause()

    @unnoticed
    def step_ended(self, optimizer: Optimizer) -> None:
        """An optimizer's step is over; it is still what runs."""
        self._where.changed()
        self._mode.resume()
        self._owners.learn_states(optimizer)
        self._sample()
        if self._ledger.peak_bytes > self._reported_peak:
            self._report_peak()
        self._where.changed()

    @unnoticed
    def end(self) -> None:
        """The program is over: report where it stands and its peak."""
        self._mode.resume()
        self._owners.learn_gradients()
        self._tokens = max(self._tokens, 1.0)
        self._sample()
        if self._ledger.peak_bytes > 0:
            self._report_peak()

    # ------------------------------------------------------------------ reports
    def _too_many_ops(self) -> None:
        self._is_cut = True
        args: Args = {"count": MAX_OPS}
        self._report(NoteReport(at_ns=time.monotonic_ns(), code="memory-cut", args=args))

    def _sample(self) -> None:
        if self._is_cut:
            self._mode.pause()
            return
        position = self._position
        phase, sums = position.phase(), self._ledger.sums()
        # A picture of both would be the same; only a new phase is worth a report then.
        if sums == self._last_sums and phase == self._last_phase:
            return
        self._last_phase, self._last_sums = phase, sums
        if not self._take_token():
            return
        peak_bytes = self._ledger.peak_bytes
        self._report(
            MemoryReport(
                at_ns=time.monotonic_ns(),
                parameter_bytes=sums[0],
                gradient_bytes=sums[1],
                optimizer_bytes=sums[2],
                activation_bytes=sums[3],
                buffer_bytes=sums[4],
                communication_bytes=sums[5],
                other_bytes=sums[6],
                peak_bytes=peak_bytes,
                phase=phase,
                module=position.module(),
                line=position.line(),
                allocated_bytes=self._allocator("allocated"),
                reserved_bytes=self._allocator("reserved"),
            )
        )
        if peak_bytes > self._reported_peak * _PEAK_GROWTH:
            self._report_peak()

    def _take_token(self) -> bool:
        now_ns = time.monotonic_ns()
        self._tokens = min(_BURST, self._tokens + (now_ns - self._refilled_ns) / 1e9 * _PER_S)
        self._refilled_ns = now_ns
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _report_peak(self) -> None:
        if self._is_cut:
            return
        self._reported_peak = self._ledger.peak_bytes
        facts = self._ledger.peak(MAX_HOLDINGS)
        self._report(
            PeakReport(
                at_ns=time.monotonic_ns(),
                parameter_bytes=facts.parameter_bytes,
                gradient_bytes=facts.gradient_bytes,
                optimizer_bytes=facts.optimizer_bytes,
                activation_bytes=facts.activation_bytes,
                buffer_bytes=facts.buffer_bytes,
                communication_bytes=facts.communication_bytes,
                other_bytes=facts.other_bytes,
                peak_bytes=facts.peak_bytes,
                phase=facts.phase,
                module=facts.module,
                line=facts.line,
                allocated_bytes=self._allocator("allocated"),
                reserved_bytes=self._allocator("reserved"),
                held=facts.held,
            )
        )

    def _allocator(self, which: str) -> int | None:
        if self._device != "cuda":
            return None
        cuda = torch.cuda
        return cuda.memory_allocated() if which == "allocated" else cuda.memory_reserved()

    def _changed(self, action: AllocationAction, entry: Entry) -> None:
        self._num_changes += 1
        if self._num_changes > MAX_ALLOCATIONS:
            if self._num_changes == MAX_ALLOCATIONS + 1:
                args: Args = {"count": MAX_ALLOCATIONS}
                self._report(
                    NoteReport(at_ns=time.monotonic_ns(), code="allocations-cut", args=args)
                )
            return
        is_new = action == "allocate"
        position, place = self._position, entry.place
        self._report(
            AllocationReport(
                at_ns=time.monotonic_ns(),
                action=action,
                storage=entry.number,
                num_bytes=entry.num_bytes,
                category=entry.category,
                op=None if place.op is None else str(place.op),
                shape=entry.shape,
                dtype=dtype_name(entry),
                phase=place.phase if is_new else position.phase(),
                module=place.module if is_new else position.module(),
                line=place.line if is_new else position.line(),
            )
        )
