"""Alembic's folder: one file per step of the schema. Run by `app.store.engine` only."""
