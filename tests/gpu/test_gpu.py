"""The GPU checks as tests: skipped, with the reason, where there is no GPU."""

from collections.abc import AsyncIterator, Callable

import pytest

from engine.executor.local import LocalExecutor
from tests.gpu.checks import BESIDE, CHECKS, Check, block_bytes, missing, open_executor

WHY_NOT = missing()
needs_gpu = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


@pytest.fixture(scope="module")
async def on_this_machine() -> AsyncIterator[LocalExecutor]:
    executor = await open_executor()
    yield executor
    await executor.close()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("check", BESIDE, ids=lambda check: check.__name__)
def test_beside_the_engine(check: Callable[[], str]) -> None:
    assert check()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_in_the_engine(check: Check, on_this_machine: LocalExecutor) -> None:
    assert await check(on_this_machine)


def test_allocator_rounds_up_to_its_blocks() -> None:
    assert [block_bytes(size) for size in (0, 1, 512, 513, 4004)] == [0, 512, 512, 1024, 4096]
