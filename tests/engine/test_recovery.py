"""Warm parents and supervisors that die, or are due: no run is lost that had not begun.

The processes are real and so are their deaths.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineCrashed
from engine.events import Event, Output, Started
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.executor.warm import BackOff, Renewal, WarmParent
from engine.program import Limits, Program
from engine.sandbox.choice import SandboxChoice
from engine.sandbox.linux import children_of
from tests.engine.conftest import collect

WALLED = SandboxChoice(at_most="walled")
"""Supervisors are then children of the warm parent, in this pid namespace."""
HELLO = Program(source='print("hello", flush=True)\n', world_size=2)
FOR_EVER = Program(source='print("on", flush=True)\nwhile True: pass\n', world_size=1)
PATIENT = Program(
    source='print("on", flush=True)\nimport time; time.sleep(600)\n',
    world_size=1,
    limits=Limits(wall_s=300),
)
WAITS = Program(source='print("on", flush=True)\nimport time; time.sleep(3)\n', world_size=1)


@pytest.fixture(scope="module")
async def crashing() -> AsyncIterator[LocalExecutor]:
    executor = LocalExecutor(slots=1, num_parked=1, sandbox=WALLED)
    await executor.start()
    yield executor
    await executor.close()


def zygote_of(executor: LocalExecutor) -> int:
    pid = executor._warm.pid
    assert pid is not None
    return pid


async def renewed(warm: WarmParent, num: int) -> None:
    """Return once so many successors have taken over."""
    async with asyncio.timeout(120):
        while warm.num_renewed < num:
            await warm._changed.wait()
            await asyncio.sleep(0)


async def submit(executor: LocalExecutor, name: str, program: Program = HELLO) -> RunRef:
    ref = RunRef(run_id=name)
    await executor.submit(program, ref)
    return ref


async def events_until_output(executor: LocalExecutor, ref: RunRef) -> list[Event]:
    events: list[Event] = []
    async for item in executor.stream(ref):
        if not isinstance(item, Queued):
            events.append(item)
        if isinstance(item, Output):
            break
    return events


# ------------------------------------------------------------------ a supervisor
async def test_supervisor_killed_before_the_program_began_costs_nothing(
    crashing: LocalExecutor,
) -> None:
    await crashing.wait_parked()
    (supervisor,) = children_of(zygote_of(crashing))
    ref = await submit(crashing, "retried")  # it takes the parked slot: nothing has run since
    os.kill(supervisor, signal.SIGKILL)
    ran = await collect(crashing, ref)
    assert ran.outcome.status == "ok"
    assert [ran.text(rank) for rank in range(2)] == ["hello\n", "hello\n"]
    assert [event for event in ran.events if isinstance(event, Started)] == [ran.events[0]]
    own = [event.seq for event in ran.events if event.rank < 0]
    assert own == list(range(len(own)))


async def test_ranks_killed_before_the_program_began_cost_nothing(crashing: LocalExecutor) -> None:
    await crashing.wait_parked()
    kill_parked_ranks(crashing)
    ran = await collect(crashing, await submit(crashing, "dead-ranks"))
    assert (ran.outcome.status, ran.text(1)) == ("ok", "hello\n")
    assert sum(isinstance(event, Started) for event in ran.events) == 1


def kill_parked_ranks(executor: LocalExecutor) -> None:
    for supervisor in children_of(zygote_of(executor)):
        (init,) = children_of(supervisor)
        for rank in children_of(init):
            os.kill(rank, signal.SIGKILL)


async def test_ranks_that_die_before_the_program_again_and_again_are_the_engines_failure() -> None:
    executor = LocalExecutor(slots=1, num_parked=4, sandbox=WALLED)
    await executor.start()
    try:
        kill_parked_ranks(executor)
        ran = await collect(executor, await submit(executor, "always-dead"))
    finally:
        await executor.close()
    assert ran.outcome.status == "engine_failure"
    assert ran.codes == ["engine-failure"]


async def test_supervisor_killed_in_a_run_is_the_engines_failure_and_the_next_run_is_well(
    crashing: LocalExecutor,
) -> None:
    await crashing.wait_parked()
    (supervisor,) = children_of(zygote_of(crashing))
    ref = await submit(crashing, "killed", FOR_EVER)
    before = await events_until_output(crashing, ref)
    (init,) = children_of(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    ran = await collect(crashing, ref)
    assert isinstance(before[0], Started)
    assert (ran.outcome.status, ran.codes) == ("engine_failure", ["engine-failure"])
    await until_gone(init)
    after = await collect(crashing, await submit(crashing, "after-killed"))
    assert after.outcome.status == "ok"


async def until_gone(pid: int) -> None:
    """Return once a process that is not a child of this one has ended. Raises: TimeoutError."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(20):
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


# ------------------------------------------------------------------ the warm parent
async def test_dead_warm_parent_is_replaced_and_no_run_is_lost(crashing: LocalExecutor) -> None:
    await crashing.wait_parked()
    pid, num = zygote_of(crashing), crashing._warm.num_renewed
    running = await submit(crashing, "goes-on", WAITS)
    waiting = [await submit(crashing, f"waits-{number}") for number in range(3)]
    await events_until_output(crashing, running)
    os.kill(pid, signal.SIGKILL)
    assert (await collect(crashing, running)).outcome.status == "ok"
    for ref in waiting:
        ran = await collect(crashing, ref)
        assert (ran.outcome.status, ran.text(0)) == ("ok", "hello\n")
    await renewed(crashing._warm, num + 1)
    assert zygote_of(crashing) != pid
    assert (await crashing.health()).is_ready


async def test_cancelled_while_no_slot_is_to_be_had(crashing: LocalExecutor) -> None:
    await crashing.wait_parked()
    num = crashing._warm.num_renewed
    for supervisor in children_of(zygote_of(crashing)):
        os.kill(supervisor, signal.SIGKILL)
    os.kill(zygote_of(crashing), signal.SIGKILL)
    assert crashing._warm._zygote is not None
    await crashing._warm._zygote.ended()
    ref = await submit(crashing, "no-slot")
    for _ in range(3):  # let it come to wait for a warm parent
        await asyncio.sleep(0)
    await crashing.cancel(ref)
    assert (await collect(crashing, ref)).outcome.status == "cancelled"
    assert crashing._warm.num_renewed == num, "the cancelled run must not wait for a warm parent"
    await renewed(crashing._warm, num + 1)
    assert (await collect(crashing, await submit(crashing, "has-slot"))).outcome.status == "ok"


async def test_parent_that_has_served_its_runs_is_renewed_beside_a_run_that_goes_on() -> None:
    renewal = Renewal(after_runs=2)
    executor = LocalExecutor(slots=2, num_parked=1, sandbox=WALLED, renewal=renewal)
    await executor.start()
    try:
        first = zygote_of(executor)
        long = await submit(executor, "long", PATIENT)
        await events_until_output(executor, long)
        second = await collect(executor, await submit(executor, "second"))
        assert second.outcome.status == "ok"
        await renewed(executor._warm, 1)
        assert zygote_of(executor) != first
        third = await collect(executor, await submit(executor, "third"))
        assert third.outcome.status == "ok"
        os.kill(first, 0)  # the old parent stays while a run of it goes on
        await executor.cancel(long)
        assert (await collect(executor, long)).outcome.status == "cancelled"
        async with asyncio.timeout(20):
            await executor.wait_parked()
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
    finally:
        await executor.close()


async def test_parent_is_renewed_when_its_time_is_over() -> None:
    warm = WarmParent(sandbox=WALLED, num_parked=0, renewal=Renewal(after_s=0.1))
    await warm.start()
    try:
        first = warm.pid
        await renewed(warm, 1)
        assert warm.pid != first
    finally:
        await warm.close()


async def test_parent_that_keeps_dying_is_told_of_and_comes_back_by_itself() -> None:
    executor = LocalExecutor(slots=1, num_parked=0, sandbox=WALLED)
    executor._warm._back_off = BackOff(at_once=0, max_delay_s=1)
    await executor.start()
    try:
        told = executor._warm._changed
        os.kill(zygote_of(executor), signal.SIGKILL)
        await told.wait()
        health = await executor.health()
        assert not health.is_ready
        assert health.reason is not None
        assert "1 times in a row" in health.reason
        ran = await collect(executor, await submit(executor, "meanwhile"))
        assert ran.outcome.status == "engine_failure"
        await renewed(executor._warm, 1)
        assert (await executor.health()).is_ready
        ran = await collect(executor, await submit(executor, "again"))
        assert ran.outcome.status == "ok"
    finally:
        await executor.close()


async def test_no_slot_of_a_parent_that_never_started() -> None:
    warm = WarmParent(sandbox=SandboxChoice(at_most="open"), num_parked=0)
    warm.failure = "it failed"
    with pytest.raises(EngineCrashed, match="it failed"):
        await warm.take()


@given(st.lists(st.floats(0, 59), min_size=1, max_size=200))
def test_waits_grow_to_a_bound_while_parents_die_at_once(lives_s: list[float]) -> None:
    back_off = BackOff()
    delays = [back_off.died(lived_s) for lived_s in lives_s]
    assert delays == sorted(delays)
    assert not any(delays[:3])
    assert all(0 < delay <= 60 for delay in delays[3:])
    assert back_off.died(60.0) == 0, "a parent that lived long begins anew"
