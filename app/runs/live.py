"""One run in memory: its events, their fold, and waking those who follow it."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.runs.requests import NewRun, Owner
from app.store import RunRow
from app.store.runs import EventRow
from app.store.tables import now
from engine.errors import ProgramRefused
from engine.events import Collective, Diagnosis, Event, Outcome, Output, Started, Status
from engine.messages import DIAGNOSES
from engine.trace import Trace, fold
from engine.wire import encode

RunState = Literal["queued", "starting", "running", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What is known of a run besides its events."""

    run_id: str
    learner_id: str | None
    lesson_id: str
    """Empty when the program came through the API; so is cell_id."""
    cell_id: str
    source: str
    world_size: int
    device: str
    """What was asked for, and once the ranks have started what they run on."""
    wall_limit_s: float
    state: RunState
    position: int | None
    """Runs ahead in the queue."""
    elapsed_s: float
    is_stale: bool = False
    """The learner's code in the cell is no longer this source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one moment; the trace is a copy that no longer changes."""

    record: RunRecord
    trace: Trace
    num_events: int
    """Events folded so far: the position at which to go on."""

    @property
    def has_ended(self) -> bool:
        return self.record.state == "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A snapshot for one follower, and where in the trace begins what they have not seen."""

    snapshot: Snapshot
    output_from: int
    collectives_from: int


class LiveRun:
    """Grows by `queue` and `add`; followers wait in `changed`."""

    def __init__(
        self,
        row: RunRow,
        owner_key: str,
        events: Sequence[Event] = (),
        *,
        is_simulated: bool = False,
    ) -> None:
        self.row = row
        self.owner_key = owner_key
        self.events: list[Event] = list(events)
        self.version = 0
        self.cancel_requested = False
        self._is_simulated = is_simulated
        self._trace = fold(self.events)
        self._position: int | None = None
        self._started_at_s: float | None = None
        self._changed = asyncio.Event()

    @property
    def has_ended(self) -> bool:
        return self._trace.outcome is not None

    @property
    def started_at_s(self) -> float | None:
        """time.monotonic() at the start of the ranks."""
        return self._started_at_s

    @property
    def simulated_ranks(self) -> int | None:
        """Ranks that the run's one process stands for, once it has started."""
        return self._trace.started.simulated_ranks if self._trace.started else None

    def encoded(self, event: Event) -> str:
        """One line of the run's events, labelled where they are simulated."""
        is_simulated = self._is_simulated or self.simulated_ranks is not None
        is_simulated |= isinstance(event, Started) and event.simulated_ranks is not None
        return encode(event, is_simulated=is_simulated)

    def next_row(self, event: Event) -> EventRow:
        """The run's next event as it is kept."""
        return EventRow(run_id=self.row.id, position=len(self.events), payload=self.encoded(event))

    def queue(self, position: int) -> None:
        """Note how many runs are ahead."""
        self._position = position
        self.touch()

    def add(self, event: Event) -> None:
        """Fold one more event in."""
        if isinstance(event, Started):
            self._started_at_s = time.monotonic()
        self.events.append(event)
        self._trace.add(event)
        self.touch()

    def touch(self) -> None:
        """Wake all followers."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, since_version: int, timeout_s: float) -> None:
        """Wait until the version differs from the given one, or for timeout_s."""
        if self.version != since_version:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    def is_of(self, new: NewRun) -> bool:
        """Whether it runs the cell that the new run is of."""
        return (self.row.lesson_id, self.row.cell_id) == (new.lesson_id, new.cell_id)

    def snapshot(self) -> Snapshot:
        """The run at this moment."""
        trace = self._trace
        copy = Trace(
            started=trace.started,
            outputs=trace.outputs[:],
            collectives=trace.collectives[:],
            statistics=trace.statistics[:],
            notes=trace.notes[:],
            outcome=trace.outcome,
        )
        return Snapshot(record=self._record(), trace=copy, num_events=len(self.events))

    def seen(self, position: int) -> tuple[int, int]:
        """How many outputs and collectives are among the first `position` events."""
        events = self.events[: max(0, position)]
        num_outputs = sum(isinstance(event, Output) for event in events)
        return num_outputs, sum(isinstance(event, Collective) for event in events)

    def failure(
        self, status: Status = "engine_failure", said: ProgramRefused | None = None
    ) -> Outcome:
        """An outcome for a run that the engine brought to no end of its own; `said` is why."""
        diagnosis = Diagnosis(
            code=said.code if said else "engine-failure",
            message=str(said) if said else DIAGNOSES["engine-failure"],
            line=None,
            rank=None,
            args=said.said if said else {},
        )
        last = self.events[-1] if self.events else None
        return Outcome(
            rank=-1,
            seq=sum(event.rank < 0 for event in self.events),
            at_ns=last.at_ns if last else 0,
            status=status,
            ranks=(),
            diagnosis=(diagnosis,) if status == "engine_failure" else (),
            elapsed_s=self._elapsed_s(),
            dropped_events=0,
        )

    def _record(self) -> RunRecord:
        started = self._trace.started
        return RunRecord(
            run_id=self.row.id,
            learner_id=self.row.learner_id,
            lesson_id=self.row.lesson_id or "",
            cell_id=self.row.cell_id or "",
            source=self.row.source,
            world_size=self.row.world_size,
            device=started.device if started else self.row.device,
            wall_limit_s=self.row.wall_limit_s,
            state=self._state(),
            position=self._position if self._state() == "queued" else None,
            elapsed_s=self._elapsed_s(),
        )

    def _state(self) -> RunState:
        if self._trace.outcome is not None:
            return "ended"
        if self.events:
            return "running"
        return "starting" if self._position is None else "queued"

    def _elapsed_s(self) -> float:
        if self._trace.outcome is not None:
            return self._trace.outcome.elapsed_s
        if self._started_at_s is not None:
            return time.monotonic() - self._started_at_s
        return self.events[-1].at_ns / 1e9 if self.events else 0.0


def new_row(owner: Owner, new: NewRun) -> RunRow:
    """The record of a run that starts now."""
    return RunRow(
        id=secrets.token_hex(16),
        learner_id=owner.learner_id,
        lesson_id=new.lesson_id,
        cell_id=new.cell_id,
        source=new.program.source,
        world_size=new.program.world_size,
        device=new.program.device,
        wall_limit_s=new.program.limits.wall_s,
        created_at=now(),
    )
