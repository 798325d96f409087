"""Runs that are over: read from the store once, then kept in memory while there is room."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence

from app.runs.live import LiveRun
from app.store import RunRow, RunStore
from engine.errors import WireError
from engine.events import Event
from engine.wire import decode

MAX_EVENTS = 200_000
MAX_RUNS = 256

_log = logging.getLogger(__name__)


class Archive:
    """The most recently used runs that have ended, at most 200,000 events together."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()
        self._num_events = 0

    def get(self, run_id: str) -> LiveRun | None:
        run = self._runs.get(run_id)
        if run is not None:
            self._runs.move_to_end(run_id)
        return run

    def put(self, run: LiveRun) -> None:
        """Keep an ended run, letting go of the least recently used."""
        if run.row.id in self._runs:
            return
        self._runs[run.row.id] = run
        self._num_events += len(run.events)
        while self._num_events > MAX_EVENTS or len(self._runs) > MAX_RUNS:
            _, oldest = self._runs.popitem(last=False)
            self._num_events -= len(oldest.events)

    async def load(self, row: RunRow) -> LiveRun:
        """The run of a row, with its events from the store."""
        lines = await self._store.events(row.id)
        events = await asyncio.to_thread(_decode, row.id, lines)
        run = LiveRun(row, row.learner_id or "", events)
        if run.has_ended:
            self.put(run)
        return run


def _decode(run_id: str, lines: Sequence[str]) -> list[Event]:
    events = []
    for line in lines:
        try:
            events.append(decode(line))
        except WireError as error:  # written by another version; the rest is still of use
            _log.warning("left out a stored event: %s", error.reason, extra={"run_id": run_id})
    return events
