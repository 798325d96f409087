"""The store: schema, drafts, answers, places, and events in the order in which they came."""

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.settings import Settings
from app.store import (
    Database,
    Draft,
    DraftConflict,
    EventWriter,
    Learning,
    NewerDatabase,
    RunRow,
    RunStore,
    StoreError,
    open_database,
)
from app.store.runs import EventRow, run_end
from app.store.tables import metadata, now


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_database(f"sqlite+aiosqlite:///{tmp_path / 'academy.sqlite3'}")
    await database.migrate()
    yield database
    await database.close()


@pytest.fixture
def learning(database: Database) -> Learning:
    return Learning(database)


def run_row(run_id: str, learner_id: str | None = None, cell_id: str | None = None) -> RunRow:
    return RunRow(
        id=run_id,
        learner_id=learner_id,
        lesson_id="lesson",
        cell_id=cell_id,
        source="print()",
        world_size=2,
        device="auto",
        wall_limit_s=20.0,
        created_at=now(),
    )


async def columns(connection: AsyncConnection) -> dict[str, set[str]]:
    def read(sync: Connection) -> dict[str, set[str]]:
        found = inspect(sync)
        return {
            name: {column["name"] for column in found.get_columns(name)}
            for name in found.get_table_names()
        }

    return await connection.run_sync(read)


async def test_migrations_create_exactly_the_tables_of_the_schema(database: Database) -> None:
    async with database.read() as connection:
        found = await columns(connection)
    del found["alembic_version"]
    assert found == {
        table.name: {column.name for column in table.columns} for table in metadata.sorted_tables
    }


async def test_second_migration_has_nothing_to_do(database: Database) -> None:
    assert await database.migrate() == 0


async def test_newer_database_is_refused_by_name(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(NewerDatabase, match="9999"):
        await database.migrate()


async def test_sqlite_is_in_wal_mode_with_foreign_keys(database: Database) -> None:
    async with database.read() as connection:
        assert (await connection.execute(text("PRAGMA journal_mode"))).scalar() == "wal"
        assert (await connection.execute(text("PRAGMA foreign_keys"))).scalar() == 1


async def test_draft_on_an_older_revision_is_refused_and_the_stored_one_stays(
    learning: Learning,
) -> None:
    await learning.save_draft("ann", "lesson", "cell", Draft(code="1", ranks=2, revision=0))
    newest = await learning.save_draft(
        "ann", "lesson", "cell", Draft(code="2", ranks=2, revision=1)
    )
    with pytest.raises(DraftConflict) as refused:
        await learning.save_draft("ann", "lesson", "cell", Draft(code="3", ranks=2, revision=1))
    assert refused.value.stored == newest
    assert (await learning.drafts("ann", "lesson"))["cell"] == newest


async def test_same_draft_again_keeps_its_revision(learning: Learning) -> None:
    draft = Draft(code="1", ranks=2, revision=0)
    first = await learning.save_draft("ann", "lesson", "cell", draft)
    assert await learning.save_draft("ann", "lesson", "cell", draft) == first


async def test_reset_draft_is_newer_than_what_another_page_holds(learning: Learning) -> None:
    await learning.save_draft("ann", "lesson", "cell", Draft(code="1", ranks=2, revision=0))
    reset = Draft(code=None, ranks=None, revision=0)
    await learning.save_draft("ann", "lesson", "cell", reset, force=True)
    with pytest.raises(DraftConflict):
        await learning.save_draft("ann", "lesson", "cell", Draft(code="2", ranks=2, revision=1))


async def test_of_two_drafts_at_once_one_is_refused(learning: Learning) -> None:
    results = await asyncio.gather(
        *(
            learning.save_draft("ann", "lesson", "cell", Draft(code=code, ranks=2, revision=0))
            for code in "ab"
        ),
        return_exceptions=True,
    )
    assert sorted(type(result).__name__ for result in results) == ["Draft", "DraftConflict"]


async def test_drafts_of_one_learner_are_not_seen_by_another(learning: Learning) -> None:
    await learning.save_draft("ann", "lesson", "cell", Draft(code="1", ranks=2, revision=0))
    assert await learning.drafts("bob", "lesson") == {}


async def test_last_answer_to_a_check_counts(learning: Learning) -> None:
    await learning.add_answer("ann", "lesson", "check", {"a": "x"}, is_right=False)
    await learning.add_answer("ann", "lesson", "check", {"a": "y"}, is_right=True)
    assert await learning.last_answers("ann", "lesson") == {"check": {"a": "y"}}


async def test_place_moves(learning: Learning) -> None:
    await learning.set_place("ann", "lesson", "first")
    await learning.set_place("ann", "lesson", "second")
    assert await learning.place("ann", "lesson") == "second"


async def test_events_of_many_runs_are_each_in_order_and_without_gap(database: Database) -> None:
    store, writer = RunStore(database), EventWriter(database)
    run_ids = ["a", "b", "c"]
    for run_id in run_ids:
        await store.insert(run_row(run_id))
    writer.start()

    async def report(run_id: str) -> None:
        for position in range(700):
            await writer.append(
                [EventRow(run_id=run_id, position=position, payload=f"{run_id}{position}")]
            )
            if position % 50 == 0:
                await asyncio.sleep(0)
        writer.end(run_end(run_id, "ok", 1.0))

    await asyncio.gather(*(report(run_id) for run_id in run_ids))
    await writer.flush()
    for run_id in run_ids:
        assert await store.events(run_id) == [f"{run_id}{n}" for n in range(700)]
        assert await store.events(run_id, after=698) == [f"{run_id}698", f"{run_id}699"]
    assert await store.unfinished() == []
    await writer.close()


async def test_closing_writer_commits_what_is_queued(database: Database) -> None:
    store, writer = RunStore(database), EventWriter(database)
    await store.insert(run_row("a"))
    writer.start()
    await writer.append([EventRow(run_id="a", position=0, payload="x")])
    await writer.close()
    assert await store.events("a") == ["x"]


async def test_rows_that_cannot_be_written_do_not_hold_up_later_ones(database: Database) -> None:
    store, writer = RunStore(database), EventWriter(database)
    await store.insert(run_row("a"))
    writer.start()
    await writer.append([EventRow(run_id="no such run", position=0, payload="x")])
    await writer.flush()
    await writer.append([EventRow(run_id="a", position=0, payload="x")])
    await writer.flush()
    assert await store.events("a") == ["x"]
    await writer.close()


async def test_row_that_cannot_be_written_costs_only_its_own_run(database: Database) -> None:
    store, writer = RunStore(database), EventWriter(database)
    await store.insert(run_row("a"))
    await writer.append([EventRow(run_id="no such run", position=0, payload="x")])
    await writer.append([EventRow(run_id="a", position=0, payload="x")])
    writer.end(run_end("a", "ok", 1.0))
    writer.start()  # only now: both are in its first transaction
    await writer.flush()
    assert await store.events("a") == ["x"]
    assert await store.unfinished() == []
    await writer.close()


async def test_newest_run_of_each_cell_is_found(database: Database) -> None:
    store = RunStore(database)
    for run_id, cell_id in (("1", "x"), ("2", "x"), ("3", "y")):
        await store.insert(run_row(run_id, "ann", cell_id))
    found = await store.last_of_cells("ann", "lesson")
    assert {cell: row.id for cell, row in found.items()} == {"x": "2", "y": "3"}


def test_secret_key_is_made_once_and_private(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    first = settings.secret()
    assert settings.secret() == first
    assert len(first) >= 32
    path = tmp_path / "data" / "secret_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_database_that_cannot_be_written_is_a_store_error_and_loses_no_event(
    database: Database,
) -> None:
    store, writer = RunStore(database), EventWriter(database)
    await store.insert(run_row("a"))
    async with database.write() as connection:
        await connection.execute(text("ALTER TABLE run_events RENAME TO elsewhere"))
    writer.start()
    await writer.append([EventRow(run_id="a", position=0, payload="x")])
    with pytest.raises(StoreError):
        await store.events("a")
    async with database.write() as connection:
        await connection.execute(text("ALTER TABLE elsewhere RENAME TO run_events"))
    await writer.flush()
    assert await store.events("a") == ["x"]
    await writer.close()
