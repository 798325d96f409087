"""What is kept: tables, migrations, the database engine, and the one writer of events.

May import SQLAlchemy and Alembic only. One schema serves SQLite and PostgreSQL.
"""

from app.store.engine import Database, NewerDatabase, StoreError, open_database
from app.store.learning import Draft, DraftConflict, Learning
from app.store.runs import RunRow, RunStore
from app.store.writer import EventWriter

__all__ = [
    "Database",
    "Draft",
    "DraftConflict",
    "EventWriter",
    "Learning",
    "NewerDatabase",
    "RunRow",
    "RunStore",
    "StoreError",
    "open_database",
]
