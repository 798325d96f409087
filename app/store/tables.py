"""The tables, as SQLAlchemy core sees them; the migrations create exactly these."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Utc(TypeDecorator[datetime]):
    """A moment in UTC; SQLite forgets the zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        assert value is None or value.tzinfo is not None, "a moment needs a time zone"
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


learners = Table(
    "learners",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("created_at", Utc, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(32), primary_key=True),
    # Null: started through the API without a cookie; whoever knows the id may read it.
    Column("learner_id", String(32), ForeignKey("learners.id"), nullable=True),
    Column("lesson_id", String(64), nullable=True),
    Column("cell_id", String(64), nullable=True),
    Column("source", Text, nullable=False),
    Column("world_size", Integer, nullable=False),
    Column("device", String(8), nullable=False),
    Column("wall_limit_s", Float, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("ended_at", Utc, nullable=True),
    Column("status", String(24), nullable=True),
    Column("elapsed_s", Float, nullable=True),
    Index("ix_runs_cell", "learner_id", "lesson_id", "cell_id", "created_at"),
    Index("ix_runs_unfinished", "ended_at"),
)

run_events = Table(
    "run_events",
    metadata,
    Column("run_id", String(32), ForeignKey("runs.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("payload", Text, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("learner_id", String(32), ForeignKey("learners.id"), nullable=False),
    Column("lesson_id", String(64), nullable=False),
    Column("check_id", String(64), nullable=False),
    Column("given", JSON, nullable=False),
    Column("is_right", Boolean, nullable=False),
    Column("created_at", Utc, nullable=False),
    Index("ix_answers_check", "learner_id", "lesson_id", "check_id", "id"),
)

drafts = Table(
    "drafts",
    metadata,
    Column("learner_id", String(32), ForeignKey("learners.id"), primary_key=True),
    Column("lesson_id", String(64), primary_key=True),
    Column("cell_id", String(64), primary_key=True),
    Column("code", Text, nullable=True),  # null after a reset
    Column("ranks", Integer, nullable=True),
    Column("revision", Integer, nullable=False),
    Column("updated_at", Utc, nullable=False),
)

places = Table(
    "places",
    metadata,
    Column("learner_id", String(32), ForeignKey("learners.id"), primary_key=True),
    Column("lesson_id", String(64), primary_key=True),
    Column("section_id", String(64), nullable=False),
    Column("updated_at", Utc, nullable=False),
)


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)
