"""Runs every program of these tests once."""

from collections.abc import Awaitable, Callable

import pytest

from engine.trace import Trace
from tests.engine.conftest import Runner
from tests.engine.costs.programs import Trained

Train = Callable[[Trained], Awaitable[Trace]]


@pytest.fixture(scope="session")
def train(run: Runner) -> Train:
    done: dict[str, Trace] = {}

    async def train_it(trained: Trained) -> Trace:
        if trained.source not in done:
            ran = await run(trained.source, ranks=4)
            assert ran.outcome.status == "ok", ran.text(0, "stderr") or ran.outcome
            done[trained.source] = ran.trace
        return done[trained.source]

    return train_it
