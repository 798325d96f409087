"""Fixtures that several folders share."""

from tests.engine.conftest import executor, run

__all__ = ["executor", "run"]
