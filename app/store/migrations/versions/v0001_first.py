"""The first schema: learners, runs with their events, answers, drafts, places."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "learners",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_learners"),
    )
    _create_runs()
    _create_learning()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("learner_id", sa.String(32), nullable=True),
        sa.Column("lesson_id", sa.String(64), nullable=True),
        sa.Column("cell_id", sa.String(64), nullable=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("world_size", sa.Integer, nullable=False),
        sa.Column("device", sa.String(8), nullable=False),
        sa.Column("wall_limit_s", sa.Float, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("status", sa.String(24), nullable=True),
        sa.Column("elapsed_s", sa.Float, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.ForeignKeyConstraint(["learner_id"], ["learners.id"], "fk_runs_learner_id_learners"),
    )
    op.create_index("ix_runs_cell", "runs", ["learner_id", "lesson_id", "cell_id", "created_at"])
    op.create_index("ix_runs_unfinished", "runs", ["ended_at"])
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.String(32), nullable=False),
        sa.Column("position", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_run_events"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], "fk_run_events_run_id_runs"),
    )


def _create_learning() -> None:
    op.create_table(
        "answers",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("learner_id", sa.String(32), nullable=False),
        sa.Column("lesson_id", sa.String(64), nullable=False),
        sa.Column("check_id", sa.String(64), nullable=False),
        sa.Column("given", sa.JSON, nullable=False),
        sa.Column("is_right", sa.Boolean, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_answers"),
        sa.ForeignKeyConstraint(["learner_id"], ["learners.id"], "fk_answers_learner_id_learners"),
    )
    op.create_index("ix_answers_check", "answers", ["learner_id", "lesson_id", "check_id", "id"])
    op.create_table(
        "drafts",
        sa.Column("learner_id", sa.String(32), nullable=False),
        sa.Column("lesson_id", sa.String(64), nullable=False),
        sa.Column("cell_id", sa.String(64), nullable=False),
        sa.Column("code", sa.Text, nullable=True),
        sa.Column("ranks", sa.Integer, nullable=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "lesson_id", "cell_id", name="pk_drafts"),
        sa.ForeignKeyConstraint(["learner_id"], ["learners.id"], "fk_drafts_learner_id_learners"),
    )
    op.create_table(
        "places",
        sa.Column("learner_id", sa.String(32), nullable=False),
        sa.Column("lesson_id", sa.String(64), nullable=False),
        sa.Column("section_id", sa.String(64), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "lesson_id", name="pk_places"),
        sa.ForeignKeyConstraint(["learner_id"], ["learners.id"], "fk_places_learner_id_learners"),
    )


def downgrade() -> None:
    """Drop every table."""
    for name in ("places", "drafts", "answers", "run_events", "runs", "learners"):
        op.drop_table(name)
