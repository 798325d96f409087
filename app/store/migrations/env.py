"""Alembic's entry point: runs the steps on the connection that `Database.migrate` hands over.

With the `alembic` command (`revision --autogenerate`) the URL comes from `-x url=...`.
"""

from alembic import context
from sqlalchemy import Connection, create_engine

from app.store.tables import metadata


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


def _main() -> None:
    given = context.config.attributes.get("connection")
    if isinstance(given, Connection):
        _run(given)
        return
    with create_engine(context.get_x_argument(as_dictionary=True)["url"]).begin() as connection:
        _run(connection)


_main()
