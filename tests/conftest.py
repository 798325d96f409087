"""Fixtures that several folders share, and the order of the folders."""

import pytest

from tests.engine.conftest import executor, run

__all__ = ["executor", "run"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: their driver keeps an event loop running in this thread."""
    items.sort(key=lambda item: "tests/browser/" in item.path.as_posix())
