"""Opens the database and brings its schema up to date."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

BUSY_TIMEOUT_MS = 5000


class StoreError(Exception):
    """The database cannot be used, or did not take a write in time."""


class NewerDatabase(StoreError):
    """The database was written by a newer version of this program."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"The database has schema {revision}, which this version does not know. "
            "Install the newer version that wrote it, or restore an older backup."
        )
        self.revision = revision


@dataclass(frozen=True, slots=True)
class Database:
    """An open database: `read` and `write` give connections, `write` in one transaction.

    Both raise StoreError when the database is busy, full or gone.
    """

    engine: AsyncEngine

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        async with _available(), self.engine.connect() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed when the block ends without an exception."""
        async with _available(), self.engine.connect() as connection:
            await connection.execution_options(is_write=True)
            async with connection.begin():
                yield connection

    async def migrate(self) -> int:
        """Create or upgrade the schema; the number of steps taken. Raises: NewerDatabase."""
        async with self.write() as connection:
            return await connection.run_sync(_upgrade)

    async def close(self) -> None:
        await self.engine.dispose()


@asynccontextmanager
async def _available() -> AsyncIterator[None]:
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        said = str(error).splitlines()[0]
        raise StoreError(f"the database cannot be used now: {said}") from error


def open_database(url: str) -> Database:
    """Open the database of a SQLAlchemy URL; nothing is read yet."""
    engine = create_async_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if make_url(url).get_backend_name() == "sqlite":
        event.listen(engine.sync_engine, "connect", _set_up_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return Database(engine)


def _set_up_sqlite(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",  # an acknowledged answer survives a power cut
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A reader that turns writer halfway is refused at once when another wrote meanwhile, without
    # waiting out the busy timeout; so writers say so from the start.
    is_write = connection.get_execution_options().get("is_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")


def _upgrade(connection: Connection) -> int:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    script = ScriptDirectory.from_config(config)
    known = [revision.revision for revision in script.walk_revisions()]  # newest first
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise NewerDatabase(current)
    num_steps = known.index(current) if current else len(known)
    if num_steps:
        command.upgrade(config, "head")
    return num_steps
