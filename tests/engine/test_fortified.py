"""Tier fortified: the warm parent itself is inside bubblewrap, and makes sandboxes in there."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.events import Started
from engine.executor import RunRef
from engine.executor.fortress import Fortress
from engine.executor.local import LocalExecutor
from engine.executor.slots import clean_environment
from engine.program import Limits, Program
from engine.sandbox.cgroups import PREFIX
from engine.sandbox.choice import SandboxChoice
from engine.sandbox.doctor import examine
from engine.sandbox.fortress import ZYGOTE_ID, prefix, try_fortress
from tests.engine.conftest import Ran, collect

ROOT = Path(__file__).parents[2]
SUMS = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.ones(3) * dist.get_rank()
dist.all_reduce(value)
print(value.tolist())
"""
INSIDE = """
import json, os
from engine.sandbox.fortress import settle
settle()
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
def writable(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        return error.errno
    return 0
def listed(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return error.errno
print(json.dumps({
    "root": sorted(os.listdir("/")),
    "ids": status["Uid"].split(),
    "capabilities": [status[name].strip() for name in ("CapEff", "CapPrm", "CapAmb")],
    "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "core_pattern": writable("/proc/sys/kernel/core_pattern"),
    "network": [line.split(":")[0].strip() for line in open("/proc/net/dev")][2:],
    "home": listed(os.path.expanduser("~")),
    "folders": {path: listed(path) for path in PATHS},
    "can_write": [path for path in ("/", "/usr", ENGINE) if os.access(path, os.W_OK)],
}))
"""


def fortress_or_skip() -> None:
    found = try_fortress(clean_environment(os.environ))
    if not found.is_ok:
        pytest.skip(f"no outer sandbox on this machine: {found.detail}")


@pytest.fixture(scope="module")
async def fortified() -> AsyncIterator[LocalExecutor]:
    await asyncio.to_thread(fortress_or_skip)
    executor = LocalExecutor(slots=2, num_parked=1)
    await executor.start()
    yield executor
    await executor.close()


async def run(executor: LocalExecutor, source: str, ranks: int, name: str, **limits: float) -> Ran:
    program = Program(source=source, world_size=ranks, limits=Limits(**limits))  # type: ignore[arg-type]
    ref = RunRef(run_id=name)
    await executor.submit(program, ref)
    return await collect(executor, ref)


async def test_ranks_run_inside_two_sandboxes(fortified: LocalExecutor) -> None:
    assert (await fortified.health()).tier == "fortified"
    done = await run(fortified, SUMS, 4, "sums")
    assert done.outcome.status == "ok"
    assert [done.text(rank) for rank in range(4)] == ["[6.0, 6.0, 6.0]\n"] * 4
    started = next(event for event in done.events if isinstance(event, Started))
    assert started.tier == "fortified"


async def test_limits_hold_as_in_tier_walled(fortified: LocalExecutor) -> None:
    ended = await run(fortified, "while True: pass", 2, "loop", wall_s=2.0)
    assert ended.outcome.status == "timeout"
    greedy = "held = bytearray(1 << 30)\nfor at in range(0, len(held), 4096): held[at] = 1\n"
    ended = await run(fortified, greedy, 1, "greedy", memory_bytes=256 << 20)
    assert ended.outcome.status == "out_of_memory"


async def test_warm_parent_has_no_access_to_the_site(tmp_path: Path) -> None:
    """What a program would find that broke out of its own walls."""
    await asyncio.to_thread(fortress_or_skip)
    secret = tmp_path / "secret_key"
    secret.write_text("secret")
    paths = [str(tmp_path), str(ROOT), str(ROOT / "lessons"), str(ROOT / "app"), "/var", "/home"]
    source = f"PATHS = {paths!r}\nENGINE = {str(ROOT / 'engine')!r}\n{INSIDE}"
    process = await asyncio.create_subprocess_exec(
        *prefix(),
        sys.executable,
        "-I",
        "-c",
        source,
        env=clean_environment(os.environ),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    found = json.loads(said)
    assert set(found["root"]) <= {
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "mnt", "proc", "sbin", "sys",
        "tmp", "usr", *(Path(path).parts[1] for path in (sys.base_prefix, sys.prefix, str(ROOT))),
    }  # fmt: skip
    assert set(found["capabilities"]) == {"0" * 16}
    expected = ZYGOTE_ID if os.geteuid() == 0 else os.geteuid()
    assert set(found["ids"]) == {str(expected)}
    assert found["core_pattern"] != 0
    assert found["network"] == ["lo"]
    assert len(found["pids"]) == 2, "bubblewrap's first process and this one"
    assert all(isinstance(listing, int) for listing in found["folders"].values()), found["folders"]
    assert isinstance(found["home"], int)
    assert found["can_write"] == []


async def test_nothing_is_left_when_it_has_ended(fortified: LocalExecutor) -> None:
    other = LocalExecutor(slots=1, num_parked=1)
    await other.start()
    pid = other._warm.pid
    assert pid is not None
    assert groups_of(pid)
    assert (await run(other, SUMS, 2, "last")).outcome.status == "ok"
    keeper = os.pidfd_open(keeper_of(pid))
    await other.close()
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(keeper, gone.set)
    async with asyncio.timeout(30):
        await gone.wait()
    loop.remove_reader(keeper)
    os.close(keeper)
    assert groups_of(pid) == []


async def test_death_of_the_outer_sandbox_ends_its_runs_and_is_made_up_for(
    fortified: LocalExecutor,
) -> None:
    other = LocalExecutor(slots=1, num_parked=1)
    await other.start()
    try:
        program = Program(source="print('up', flush=True)\nwhile True: pass\n", world_size=1)
        await other.submit(program, RunRef(run_id="long"))
        pid = other._warm.pid
        assert pid is not None
        async for item in other.stream(RunRef(run_id="long")):
            if getattr(item, "text", "") == "up\n":
                os.kill(pid, 9)
            last = item
        assert getattr(last, "status", "") == "engine_failure"
        again = await run(other, SUMS, 2, "again")
        assert again.outcome.status == "ok"
        assert (await other.health()).num_restarts == 1
    finally:
        await other.close()


def groups_of(pid: int) -> list[Path]:
    root = Path("/sys/fs/cgroup")
    return [path for path in root.glob(f"**/{PREFIX}*-{pid}-*") if path.is_dir()]


def keeper_of(pid: int) -> int:
    """The child of bubblewrap's outer process that stayed outside."""
    own = Path("/proc/self/ns/pid").readlink()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (keeper,) = (c for c in children if Path(f"/proc/{c}/ns/pid").readlink() == own)
    return int(keeper)


async def test_walled_at_most_or_a_layer_left_out_has_no_outer_sandbox() -> None:
    environment = clean_environment(os.environ)
    for choice in (
        SandboxChoice(at_most="walled"),
        SandboxChoice(at_most="open"),
        SandboxChoice(without=frozenset({"seccomp"})),
    ):
        assert await Fortress(choice, "cpu").prefix(environment) == ()
    assert await Fortress(SandboxChoice(), "cuda").prefix(environment) == ()


async def test_machine_without_bubblewrap_stays_walled(tmp_path: Path) -> None:
    environment = {**clean_environment(os.environ), "PATH": str(tmp_path)}
    found = await asyncio.to_thread(try_fortress, environment)
    assert (found.is_ok, found.fix) == (False, "apt-get install bubblewrap")
    assert await Fortress(SandboxChoice(), "cpu").prefix(environment) == ()


async def test_bubblewrap_that_is_broken_is_no_outer_sandbox(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: no permission' >&2\nexit 1\n")
    fake.chmod(0o755)
    environment = {**clean_environment(os.environ), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    found = await asyncio.to_thread(try_fortress, environment)
    assert not found.is_ok
    assert "no permission" in (found.detail or "")


def test_doctor_agrees_with_the_executor() -> None:
    found = try_fortress(clean_environment(os.environ))
    report = examine()
    assert (report.tier == "fortified") == (found.is_ok and report.can_run)
    assert report.probes[-1].name in ("fortress", "walls", "fence")
