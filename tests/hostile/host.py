"""Runs hostile programs one after the other through the executor and says what came of each.

Started by the tests through `machine`; reads a Job as JSON from its input and writes one Report per
line. The machine around it: a secret in the environment, services on loopback and on an abstract
socket, another process of the same user, and what a run may leave behind, counted.
"""

import asyncio
import os
import socket
import sys
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from app.bench.processes import process_table, zygotes
from engine.errors import SandboxUnavailable
from engine.events import Outcome, Output
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.program import Limits, Program
from engine.sandbox.choice import SandboxChoice
from tests.hostile.leftovers import Holdings, differences, take

# Folders on the way to an interpreter that lies below /work or /tmp are not the learner's.
NORMAL = """import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo"); t = torch.ones(3); dist.all_reduce(t)
here = [entry for folder in FOLDERS for entry in os.scandir(folder)]
here = [entry for entry in here if not sys.executable.startswith(entry.path + "/")]
mine = [entry.name for entry in here if entry.stat().st_uid == os.getuid()]
print("sum", t[0].item(), *sorted(mine))
dist.destroy_process_group()
"""
_SETTLE_TRIES, _SETTLE_PAUSE_S = 200, 0.05
_CPU_PER_WALL = 2
Level = Literal["fortified", "walled", "fenced", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One program to run."""

    name: str
    source: str
    num_ranks: int
    timeout_s: float | None
    beside: str | None = None
    """Source of a program that runs at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All programs, and the strongest tier that may be taken."""

    tier: Level
    programs: tuple[Hostile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of one program, or where `name` is empty, of the start."""

    name: str
    tier: str
    status: str = ""
    text: str = ""
    normal: str = ""
    """Status of the normal run right after it, and what rank 0 of that wrote."""
    left: dict[str, str]
    is_decoy_alive: bool = True
    problem: str = ""


async def main(job: Job) -> None:
    keep = _listen()
    decoy = await asyncio.create_subprocess_exec("sleep", "900")
    choice = SandboxChoice(allow_open=job.tier == "open", at_most=job.tier)
    executor = LocalExecutor(slots=2, num_parked=1, sandbox=choice)
    try:
        await executor.start()
    except SandboxUnavailable as error:
        _say(Report(name="", tier="none", left={}, problem=str(error)))
        decoy.terminate()
        return
    tier = (await executor.health()).tier
    _say(Report(name="", tier=tier, left={}))
    try:
        await _normal(executor, tier)
        before = await _settled(executor, None)
        for hostile in job.programs:
            status, text = await _attack(executor, hostile)
            normal = await _normal(executor, tier)
            after = await _settled(executor, before)
            alive = decoy.returncode is None
            _say(
                Report(
                    name=hostile.name,
                    tier=tier,
                    status=status,
                    text=text[:60000],
                    normal=normal,
                    left=differences(before, after),
                    is_decoy_alive=alive,
                )
            )
    finally:
        decoy.terminate()
        await executor.close()
        del keep


def _listen() -> list[socket.socket]:
    tcp, unix = socket.socket(), socket.socket(socket.AF_UNIX)
    tcp.bind(("127.0.0.1", 18999))
    unix.bind("\0host-secret")
    for listener in (tcp, unix):
        listener.listen(8)
    return [tcp, unix]


async def _attack(executor: LocalExecutor, hostile: Hostile) -> tuple[str, str]:
    wall_s = hostile.timeout_s or Limits().wall_s
    limits = Limits(wall_s=wall_s, cpu_s=max(1, int(_CPU_PER_WALL * wall_s)))
    runs = [Program(source=hostile.source, world_size=hostile.num_ranks, limits=limits)]
    if hostile.beside is not None:
        runs.insert(0, Program(source=hostile.beside, world_size=1))
    ended = await asyncio.gather(*(_run(executor, program) for program in runs))
    return ended[-1]


async def _normal(executor: LocalExecutor, tier: str) -> str:
    """A run as any learner's; on a tier with one rank only, one without a group."""
    folders = "'/work', '/tmp', '/dev/shm'" if tier in ("fortified", "walled") else ""
    source = NORMAL.replace("FOLDERS", f"[{folders}]")
    if tier == "fenced":
        source = "print('sum', 1.0)\n"
    status, text = await _run(
        executor, Program(source=source, world_size=1 if tier == "fenced" else 2)
    )
    return f"{status} {text.splitlines()[0] if text else ''}"


async def _run(executor: LocalExecutor, program: Program) -> tuple[str, str]:
    ref = RunRef(run_id=os.urandom(8).hex())
    await executor.submit(program, ref)
    text: list[str] = []
    async for item in executor.stream(ref):
        if isinstance(item, Output):
            text.append(item.text)
        elif isinstance(item, Outcome):
            return item.status, "".join(text)
        else:
            assert isinstance(item, Queued) or item.kind
    raise AssertionError("a stream ends with the outcome")


async def _settled(executor: LocalExecutor, wanted: Holdings | None) -> Holdings:
    """What is held once slots are parked again; as wanted, if that comes about in time."""
    await executor.wait_parked()
    before = take(_zygote())
    for _ in range(_SETTLE_TRIES):
        await asyncio.sleep(_SETTLE_PAUSE_S)
        await executor.wait_parked()
        now = take(_zygote())
        if now == (wanted or before):
            return now
        before = now
    return before


def _zygote() -> int:
    """The one warm parent; with an outer sandbox it is a child's child."""
    (found,) = zygotes(os.getpid(), process_table())
    return found.pid


def _say(report: Report) -> None:
    sys.stdout.buffer.write(TypeAdapter(Report).dump_json(report) + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(TypeAdapter(Job).validate_json(sys.stdin.buffer.read())))
