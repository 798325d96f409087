"""Runs every GPU check and prints a line for each: `python tests/gpu/check.py`.

For a machine with one GPU: it needs a PyTorch with CUDA and what the engine imports, no pytest and
no installation of this project. Exit code 0 when all passed, 1 when one failed, 2 without a GPU.
Whole names as arguments choose some of the checks. It takes a few minutes; no check may take more
than three.
"""

import asyncio
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

CHECK_DEADLINE_S = 180.0
DEADLINE_S = 450.0
"""Checks that would begin later are skipped: some machines are lent for minutes only."""


async def main(names: Sequence[str]) -> int:
    """Run the checks of these names, or all."""
    from tests.gpu.checks import CHECKS, missing, open_executor

    why_not = missing()
    if why_not is not None:
        print(f"nothing checked: {why_not}")
        return 2
    begun_s, num_failed = time.monotonic(), 0
    executor = await open_executor()
    health = await executor.health()
    print(f"tier {health.tier}, warm after {time.monotonic() - begun_s:.1f} s", flush=True)
    try:
        for check in CHECKS:
            if names and check.__name__ not in names:
                continue
            since_s = time.monotonic()
            verdict = "skipped  no time left"
            if since_s - begun_s < DEADLINE_S:
                try:
                    async with asyncio.timeout(CHECK_DEADLINE_S):
                        verdict = f"ok       {await check(executor)}"
                except Exception as error:  # noqa: BLE001 - the next check may still say something
                    num_failed += 1
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    verdict = (
                        f"FAILED   {type(error).__name__} at {last.name}:{last.lineno} {error}"
                    )
            print(f"{check.__name__:24} {time.monotonic() - since_s:6.1f} s  {verdict}", flush=True)
    finally:
        await executor.close()
    print(f"{num_failed} failed, {time.monotonic() - begun_s:.0f} s")
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
