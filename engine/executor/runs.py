"""One submitted run, as the executor on this machine keeps it.

May import the seam, slots, trace, grading's `received` and the leaves.
"""

import asyncio
import dataclasses

from engine.devices import Gpus, RunsOn, choose_device, has_too_few_gpus, on_gpus
from engine.errors import TierTooWeak
from engine.events import Event, Note, Outcome, RankEnd, Started
from engine.executor import Queued, RunRef, StreamItem
from engine.executor.slots import Hello, Slot
from engine.facts import Args
from engine.grading.received import RankExport
from engine.messages import DIAGNOSES, NOTES, render
from engine.program import Check, Program
from engine.trace import Trace


class SubmittedRun:
    """One submitted run and its items, in order."""

    def __init__(self, program: Program, ref: RunRef, runs_on: RunsOn, learner: str = "") -> None:
        self.program = program
        self.ref = ref
        self.runs_on = runs_on
        self.learner = learner
        """Whose turn it takes; without a learner it takes its own."""
        self.gpus: tuple[int, ...] = ()
        """The GPUs that it holds while it runs."""
        self.too_few_gpus: int | None = None
        """How many GPUs there are, if that made `auto` take CPU."""
        self.items: asyncio.Queue[StreamItem] = asyncio.Queue()
        self.trace = Trace()
        self.cancelled = asyncio.Event()
        self.slot: Slot | None = None
        """The slot it is in, while it is in one."""
        self.has_begun = False
        """Whether a rank is known to have begun the program."""
        self.has_ended = False
        self.position: int | None = None
        """Runs ahead of it, as it was told last."""
        self.check: Check | None = None
        """What judges it once it has ended."""
        self.exports: list[RankExport] = []
        """What its ranks have handed out, for the check."""
        self.evidence = b""
        """What goes behind the program, where that is a check."""
        self.judging: SubmittedRun | None = None
        """The run of its check, while that goes on."""
        self.num_run_events = 0
        """Events of the run itself so far: the next one's sequence number."""
        self._held: list[Event] = []
        """What is said of an attempt that may still have to be made again."""

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled.is_set()

    def cancel(self) -> None:
        """Have it stopped, whether it waits for a slot or is in one."""
        self.cancelled.set()
        if self.slot is not None:
            self.slot.writer.write(b"c")
        if self.judging is not None:
            self.judging.cancel()

    def queue(self, position: int) -> None:
        """Say how many runs are ahead, unless that was said already."""
        if position != self.position:
            self.position = position
            self.items.put_nowait(Queued(position=position))

    def put(self, event: Event) -> None:
        """Pass an event on, once the program has begun or has come to an end without."""
        if not self.has_begun and event.rank < 0 and not isinstance(event, Outcome):
            self._held.append(event)
            return
        self.begin()
        self._pass_on(event)

    def begin(self) -> None:
        """The program has begun: this attempt counts."""
        self.has_begun = True
        held, self._held = self._held, []
        for event in held:
            self._pass_on(event)

    def start_over(self) -> None:
        """Forget an attempt that has not begun the program."""
        self._held.clear()
        self.exports.clear()

    def _pass_on(self, event: Event) -> None:
        """With the start of the ranks comes what is to be said of the choice of a device."""
        if event.rank < 0:  # numbered here: some are the executor's own
            event = dataclasses.replace(event, seq=self.num_run_events)
            self.num_run_events += 1
        self.trace.add(event)
        self.items.put_nowait(event)
        if isinstance(event, Started) and self.too_few_gpus is not None:
            self._pass_on(self._took_cpu(self.too_few_gpus))

    def _took_cpu(self, num_gpus: int) -> Note:
        args: Args = {"ranks": self.program.world_size, "gpus": num_gpus}
        message = render(NOTES["auto-took-cpu"], args)
        return Note(rank=-1, seq=0, at_ns=0, code="auto-took-cpu", message=message, args=args)


def submitted(program: Program, ref: RunRef, gpus: Gpus, learner: str) -> SubmittedRun:
    """The run of a program on a machine with these GPUs. Raises: DeviceUnavailable."""
    runs_on = choose_device(program, gpus)
    placed = on_gpus(program) if runs_on == "cuda" else dataclasses.replace(program, device="cpu")
    run = SubmittedRun(placed, ref, runs_on, learner)
    if has_too_few_gpus(program, gpus):
        run.too_few_gpus = gpus.num_usable
    return run


def refuse_if_too_weak(program: Program, hello: Hello | None) -> None:
    """A fenced run has no sockets for its ranks to meet on. Raises: TierTooWeak."""
    if hello is None or hello.tier != "fenced" or program.world_size == 1:
        return
    args: Args = {"ranks": program.world_size, "remedy": hello.remedy}
    raise TierTooWeak(render(DIAGNOSES["fenced-one-rank"], args), code="fenced-one-rank", args=args)


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
