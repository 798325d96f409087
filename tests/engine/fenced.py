"""Runs programs on the tier fenced and prints what came of each, one JSON line per program.

`python -m tests.engine.fenced < programs.json`: a process of its own, so that a test can start it
as another user, or where no namespace can be made.
"""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass, field

from engine.errors import ProgramRefused
from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.program import Limits, Program
from engine.sandbox.choice import SandboxChoice
from tests.engine.conftest import collect


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One program."""

    source: str
    ranks: int = 1
    wall_s: float = 10.0
    simulated_ranks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of it."""

    tier: str
    status: str
    limit: str | None = None
    codes: list[str] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""


async def run_one(executor: LocalExecutor, number: int, wanted: Wanted) -> Seen:
    """Run it to its end, or say why it was refused."""
    program = Program(
        source=wanted.source,
        world_size=wanted.ranks,
        limits=Limits(wall_s=wanted.wall_s),
        simulated_ranks=wanted.simulated_ranks,
    )
    ref = RunRef(run_id=f"fenced-{number}")
    try:
        await executor.submit(program, ref)
    except ProgramRefused as error:
        health = await executor.health()
        return Seen(tier=health.tier, status="refused", codes=[error.code], stderr=str(error))
    ran = await collect(executor, ref)
    started = ran.trace.started
    return Seen(
        tier=started.tier if started else "",
        status=ran.outcome.status,
        limit=ran.outcome.limit,
        codes=ran.codes,
        stdout=ran.text(0),
        stderr=ran.text(0, "stderr"),
    )


async def main() -> None:
    """Run every program that comes in on stdin, one after the other."""
    executor = LocalExecutor(slots=1, num_parked=1, sandbox=SandboxChoice(at_most="fenced"))
    await executor.start()
    try:
        for number, fields in enumerate(json.load(sys.stdin)):
            seen = await run_one(executor, number, Wanted(**fields))
            print(json.dumps(asdict(seen)), flush=True)
    finally:
        await executor.close()


if __name__ == "__main__":
    asyncio.run(main())
