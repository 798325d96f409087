"""Runs every GPU check and prints a line for each: `python tests/gpu/check.py`.

For a machine with one GPU: it needs a PyTorch with CUDA and what the engine imports, no pytest and
no installation of this project. Exit code 0 when all passed, 1 when one did not, 2 without a GPU.
Names of checks as arguments choose some of them. It ends within eight minutes.
"""

import asyncio
import functools
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

CHECK_DEADLINE_S = 120.0
DEADLINE_S = 340.0
"""No check begins later: some machines are lent for minutes only."""


class Report:
    """Prints a line per check, and counts those that did not pass."""

    def __init__(self, names: Sequence[str]) -> None:
        self.num_failed = 0
        self._names = names
        self._begun_s = time.monotonic()

    async def carry_out(self, name: str, check: Callable[[], Awaitable[str]]) -> None:
        """Run one check, if it is wanted and there is time; what it raises is its line."""
        if self._names and name not in self._names:
            return
        since_s = time.monotonic()
        try:
            if since_s - self._begun_s > DEADLINE_S:
                raise TimeoutError("no time was left for it")
            async with asyncio.timeout(CHECK_DEADLINE_S):
                verdict = f"ok      {await check()}"
        except Exception as error:  # noqa: BLE001 - the next check may still say something
            self.num_failed += 1
            last = traceback.extract_tb(error.__traceback__)[-1]
            verdict = f"FAILED  {type(error).__name__} at {last.name}:{last.lineno} {error}"
        print(f"{name:24} {time.monotonic() - since_s:6.1f} s  {verdict}", flush=True)


async def main(names: Sequence[str]) -> int:
    """Run the checks of these names, or all."""
    from tests.gpu.checks import BESIDE, CHECKS, missing, open_executor

    why_not = missing()
    if why_not is not None:
        print(f"nothing checked: {why_not}")
        return 2
    report = Report(names)
    for beside in BESIDE:
        await report.carry_out(beside.__name__, functools.partial(asyncio.to_thread, beside))
    executor = await open_executor()
    try:
        print(f"engine: {await executor.health()}", flush=True)
        for check in CHECKS:
            await report.carry_out(check.__name__, functools.partial(check, executor))
    finally:
        await executor.close()
    print(f"{report.num_failed} did not pass")
    return 1 if report.num_failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
