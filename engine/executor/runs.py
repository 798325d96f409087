"""One submitted run, as the executor on this machine keeps it.

May import the seam, slots, trace and the leaves.
"""

import asyncio
import dataclasses

from engine.devices import Gpus, RunsOn, choose_device, has_too_few_gpus, on_gpus
from engine.events import Note, Outcome, RankEnd, Started
from engine.executor import Queued, RunRef, StreamItem
from engine.executor.slots import Slot
from engine.facts import Args
from engine.messages import NOTES, render
from engine.program import Program
from engine.trace import Trace


class SubmittedRun:
    """One submitted run and its items, in order."""

    def __init__(self, program: Program, ref: RunRef, runs_on: RunsOn) -> None:
        self.program = program
        self.ref = ref
        self.runs_on = runs_on
        self.gpus: tuple[int, ...] = ()
        """The GPUs that it holds while it runs."""
        self.too_few_gpus: int | None = None
        """How many GPUs there are, if that made `auto` take CPU."""
        self.items: asyncio.Queue[StreamItem] = asyncio.Queue()
        self.trace = Trace()
        self.is_cancelled = False
        self.slot: Slot | None = None
        self.has_ended = False
        self.num_run_events = 0
        """Events of the run itself so far: the next one's sequence number."""

    def put(self, item: StreamItem) -> None:
        """Pass an item on; with the start of the ranks comes what is to be said of the choice."""
        if not isinstance(item, Queued):
            if item.rank < 0:  # numbered here: some are the executor's own
                item = dataclasses.replace(item, seq=self.num_run_events)
                self.num_run_events += 1
            self.trace.add(item)
        self.items.put_nowait(item)
        if isinstance(item, Started) and self.too_few_gpus is not None:
            self.put(self._took_cpu(self.too_few_gpus))

    def _took_cpu(self, num_gpus: int) -> Note:
        args: Args = {"ranks": self.program.world_size, "gpus": num_gpus}
        message = render(NOTES["auto-took-cpu"], args)
        return Note(rank=-1, seq=0, at_ns=0, code="auto-took-cpu", message=message, args=args)


def submitted(program: Program, ref: RunRef, gpus: Gpus) -> SubmittedRun:
    """The run of a program on a machine with these GPUs. Raises: DeviceUnavailable."""
    runs_on = choose_device(program, gpus)
    placed = on_gpus(program) if runs_on == "cuda" else dataclasses.replace(program, device="cpu")
    run = SubmittedRun(placed, ref, runs_on)
    if has_too_few_gpus(program, gpus):
        run.too_few_gpus = gpus.num_usable
    return run


def bare_outcome(run: SubmittedRun, status: str) -> Outcome:
    """The outcome of a run of which no supervisor could say more."""
    started = run.trace.started
    last_ns = max((e.at_ns for e in run.trace.outputs), default=0)
    return Outcome(
        rank=-1,
        seq=run.num_run_events,
        at_ns=last_ns,
        status="cancelled" if status == "cancelled" else "engine_failure",
        ranks=tuple(
            RankEnd(rank=rank, exit=None, cpu_s=0.0, peak_bytes=0)
            for rank in range(run.program.world_size if started else 0)
        ),
        diagnosis=(),
        elapsed_s=round(last_ns / 1e9, 6),
        dropped_events=0,
    )
