"""Insert-or-update in the words of both databases, and the row that all of a learner's need."""

from collections.abc import Mapping

from sqlalchemy import Insert, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.tables import learners, now


async def ensure_learner(connection: AsyncConnection, learner_id: str) -> None:
    """Create the learner's row if this is their first write, in the caller's transaction."""
    query = select(learners.c.id).where(learners.c.id == learner_id)
    if (await connection.execute(query)).scalar() is None:
        row = {"created_at": now()}
        await connection.execute(upsert(connection, learners, {"id": learner_id}, row))


def upsert(
    connection: AsyncConnection,
    table: Table,
    keys: Mapping[str, object],
    values: Mapping[str, object],
) -> Insert:
    """Insert a row, or update the one that has its keys."""
    row = {**keys, **values}
    if connection.dialect.name == "sqlite":
        return (
            sqlite.insert(table)
            .values(row)
            .on_conflict_do_update(index_elements=list(keys), set_=dict(values))
        )
    return (
        postgresql.insert(table)
        .values(row)
        .on_conflict_do_update(index_elements=list(keys), set_=dict(values))
    )
