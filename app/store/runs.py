"""Runs and their events as rows. Positions count a run's events from 0 without a gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Row, Select, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.engine import Database
from app.store.tables import now, run_events, runs
from app.store.upsert import ensure_learner


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run as it is kept; ended_at and status are None until it has ended."""

    id: str
    learner_id: str | None
    lesson_id: str | None
    cell_id: str | None
    source: str
    world_size: int
    device: str
    wall_limit_s: float
    created_at: datetime
    ended_at: datetime | None = None
    status: str | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event of a run, encoded."""

    run_id: str
    position: int
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What is noted on a run's own row when it ends."""

    run_id: str
    status: str
    elapsed_s: float
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class RunStore:
    """Queries on runs; each call is one transaction."""

    database: Database

    async def insert(self, run: RunRow) -> None:
        async with self.database.write() as connection:
            if run.learner_id is not None:
                await ensure_learner(connection, run.learner_id)
            await connection.execute(
                insert(runs).values(
                    id=run.id,
                    learner_id=run.learner_id,
                    lesson_id=run.lesson_id,
                    cell_id=run.cell_id,
                    source=run.source,
                    world_size=run.world_size,
                    device=run.device,
                    wall_limit_s=run.wall_limit_s,
                    created_at=run.created_at,
                )
            )

    async def get(self, run_id: str) -> RunRow | None:
        rows = await self._rows(select(runs).where(runs.c.id == run_id))
        return rows[0] if rows else None

    async def last_of_cells(self, learner_id: str, lesson_id: str) -> dict[str, RunRow]:
        """The newest run of each cell of a lesson, by cell id."""
        mine = (runs.c.learner_id == learner_id) & (runs.c.lesson_id == lesson_id)
        newest = (
            select(runs.c.cell_id, func.max(runs.c.created_at).label("created_at"))
            .where(mine)
            .group_by(runs.c.cell_id)
            .subquery()
        )
        same = (runs.c.cell_id == newest.c.cell_id) & (runs.c.created_at == newest.c.created_at)
        rows = await self._rows(select(runs).join(newest, same).where(mine).order_by(runs.c.id))
        return {row.cell_id: row for row in rows if row.cell_id is not None}

    async def unfinished(self) -> list[RunRow]:
        """Runs without an end, oldest first: after a start, what a crash left behind."""
        return await self._rows(
            select(runs).where(runs.c.ended_at.is_(None)).order_by(runs.c.created_at)
        )

    async def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[str]:
        """The run's encoded events from position `after` on, in order."""
        query = (
            select(run_events.c.payload)
            .where(run_events.c.run_id == run_id, run_events.c.position >= after)
            .order_by(run_events.c.position)
            .limit(limit)
        )
        async with self.database.read() as connection:
            return list((await connection.execute(query)).scalars())

    async def num_events(self, run_id: str) -> int:
        query = select(func.max(run_events.c.position)).where(run_events.c.run_id == run_id)
        async with self.database.read() as connection:
            last = (await connection.execute(query)).scalar()
        return 0 if last is None else int(last) + 1

    async def _rows(self, query: Select[tuple[object, ...]]) -> list[RunRow]:
        async with self.database.read() as connection:
            return [_run_row(row) for row in await connection.execute(query)]


async def insert_events(connection: AsyncConnection, rows: Sequence[EventRow]) -> None:
    """Insert many events in the caller's transaction."""
    await connection.execute(
        insert(run_events),
        [{"run_id": r.run_id, "position": r.position, "payload": r.payload} for r in rows],
    )


async def end_runs(connection: AsyncConnection, ends: Sequence[RunEnd]) -> None:
    """Note the ends in the caller's transaction; a run that has one keeps its first."""
    for end in ends:
        await connection.execute(
            update(runs)
            .where(runs.c.id == end.run_id, runs.c.ended_at.is_(None))
            .values(status=end.status, elapsed_s=end.elapsed_s, ended_at=end.ended_at)
        )


def run_end(run_id: str, status: str, elapsed_s: float) -> RunEnd:
    """The end of a run at this moment."""
    return RunEnd(run_id=run_id, status=status, elapsed_s=elapsed_s, ended_at=now())


def _run_row(row: Row[tuple[object, ...]]) -> RunRow:
    return RunRow(
        id=row.id,
        learner_id=row.learner_id,
        lesson_id=row.lesson_id,
        cell_id=row.cell_id,
        source=row.source,
        world_size=row.world_size,
        device=row.device,
        wall_limit_s=row.wall_limit_s,
        created_at=row.created_at,
        ended_at=row.ended_at,
        status=row.status,
        elapsed_s=row.elapsed_s,
    )
