"""The one writer of run events: gathers what all runs report and commits it in groups."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from sqlalchemy.exc import SQLAlchemyError

from app.store.engine import Database, StoreError
from app.store.runs import EventRow, RunEnd, end_runs, insert_events

INTERVAL_S = 0.05
RETRY_S = 0.5
DEADLINE_S = 20.0
MAX_PENDING_BYTES = 32 * 1024 * 1024
ROWS_PER_INSERT = 500

_log = logging.getLogger(__name__)


class EventWriter:
    """Commits events every 50 ms in one transaction, in the order in which they came.

    `append` and `end` only queue (they wait when too much is queued); after `flush`, which does not
    wait out the 50 ms, everything queued before is on disk. Ends are noted in the transaction of
    their last events.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: list[EventRow] = []
        self._ends: list[RunEnd] = []
        self._pending_bytes = 0
        self._num_queued = 0
        self._num_done = 0
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._changed = asyncio.Condition()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._write(), name="event-writer")

    async def append(self, rows: Sequence[EventRow]) -> None:
        """Queue events. Raises: StoreError when the database takes none for too long."""
        if self._pending_bytes > MAX_PENDING_BYTES:
            await self._wait(lambda: self._pending_bytes <= MAX_PENDING_BYTES)
        self._rows.extend(rows)
        self._pending_bytes += sum(len(row.payload) for row in rows)
        self._num_queued += len(rows)
        self._wanted.set()

    def end(self, end: RunEnd) -> None:
        """Queue a run's end, behind the events that were queued before."""
        self._ends.append(end)
        self._num_queued += 1
        self._wanted.set()

    async def flush(self) -> None:
        """Wait until all that is queued now is committed. Raises: StoreError."""
        target = self._num_queued
        if self._num_done < target:
            self._hurry.set()
        await self._wait(lambda: self._num_done >= target)

    async def close(self) -> None:
        """Commit what is queued and stop. Raises: StoreError."""
        self._closing.set()
        self._hurry.set()
        self._wanted.set()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=DEADLINE_S)
            if not done:
                self._task.cancel()
                raise StoreError("the last events could not be written")

    async def _wait(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S), self._changed:
                await self._changed.wait_for(holds)
        except TimeoutError:
            raise StoreError("the database takes no events") from None

    async def _write(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await _wait_for(self._hurry, INTERVAL_S)
            self._hurry.clear()
            while self._rows or self._ends:
                if not await self._commit():
                    await _wait_for(self._closing, RETRY_S)
                    if self._closing.is_set():
                        return
            if self._closing.is_set():
                return

    async def _commit(self) -> bool:
        """Commit all that is queued now; False if that is worth another try."""
        rows, ends = self._rows, self._ends
        self._rows, self._ends = [], []
        try:
            await self._put(rows, ends)
        except StoreError:  # locked, disk full, connection lost: nothing is lost yet
            _log.exception("cannot write %s events, trying again", len(rows))
            self._rows, self._ends = rows + self._rows, ends + self._ends
            return False
        except SQLAlchemyError:  # a row that can never be written: whose run it is, pays for it
            await self._put_by_run(rows, ends)
        self._pending_bytes -= sum(len(row.payload) for row in rows)
        self._num_done += len(rows) + len(ends)
        async with self._changed:
            self._changed.notify_all()
        return True

    async def _put(self, rows: Sequence[EventRow], ends: Sequence[RunEnd]) -> None:
        """One transaction. Raises: StoreError, SQLAlchemyError."""
        async with self._database.write() as connection:
            for start in range(0, len(rows), ROWS_PER_INSERT):
                await insert_events(connection, rows[start : start + ROWS_PER_INSERT])
            await end_runs(connection, ends)

    async def _put_by_run(self, rows: Sequence[EventRow], ends: Sequence[RunEnd]) -> None:
        """Each run in a transaction of its own; what cannot be written is given up."""
        for run_id in dict.fromkeys([row.run_id for row in rows] + [end.run_id for end in ends]):
            own_rows = [row for row in rows if row.run_id == run_id]
            own_ends = [end for end in ends if end.run_id == run_id]
            while not await self._put_or_give_up(run_id, own_rows, own_ends):
                await _wait_for(self._closing, RETRY_S)
                if self._closing.is_set():
                    return

    async def _put_or_give_up(
        self, run_id: str, rows: Sequence[EventRow], ends: Sequence[RunEnd]
    ) -> bool:
        """Write what one run has queued; False if that is worth another try."""
        try:
            await self._put(rows, ends)
        except StoreError:
            return False
        except SQLAlchemyError:
            _log.exception("lost %s events", len(rows), extra={"run_id": run_id})
        return True


async def _wait_for(event: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
