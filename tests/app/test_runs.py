"""The run service, against an executor played by hand: states, limits, crashes, restarts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.runs import (
    NewRun,
    Owner,
    QueueFull,
    RunNotFound,
    RunPolicy,
    RunService,
    Snapshot,
    TooManyRuns,
)
from app.store import EventWriter, RunRow, RunStore, open_database
from app.store.runs import EventRow
from app.store.tables import now
from engine.errors import SandboxUnavailable
from engine.executor import Queued
from engine.program import Program
from engine.wire import encode
from tests.app.scripted import ScriptedExecutor, outcome, output, started

ANN = Owner(learner_id="ann", key="ann")
BOB = Owner(learner_id="bob", key="bob")
NOBODY = Owner(learner_id=None, key="address")


def new_run(cell_id: str | None = None) -> NewRun:
    program = Program(source="print()", world_size=2)
    return NewRun(program=program, lesson_id="lesson" if cell_id else None, cell_id=cell_id)


@asynccontextmanager
async def open_service(
    folder: Path, executor: ScriptedExecutor, policy: RunPolicy | None = None
) -> AsyncIterator[RunService]:
    database = open_database(f"sqlite+aiosqlite:///{folder / 'academy.sqlite3'}")
    await database.migrate()
    writer = EventWriter(database)
    writer.start()
    service = RunService(executor, RunStore(database), writer, policy or RunPolicy())
    await service.open()
    try:
        yield service
    finally:
        await service.close()
        await writer.close()
        await database.close()


@pytest.fixture
def executor() -> ScriptedExecutor:
    return ScriptedExecutor()


@pytest.fixture
async def service(tmp_path: Path, executor: ScriptedExecutor) -> AsyncIterator[RunService]:
    async with open_service(tmp_path, executor) as service:
        yield service


async def until(
    service: RunService, run_id: str, owner: Owner, holds: Callable[[Snapshot], bool]
) -> Snapshot:
    async with asyncio.timeout(10):
        async for step in await service.follow(run_id, owner.learner_id):
            if holds(step.snapshot):
                return step.snapshot
    raise AssertionError("the run ended before that")


async def test_run_passes_through_its_states(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_id = await service.start(ANN, new_run())
    assert (await service.get(run_id, "ann")).record.state == "starting"
    executor.put(run_id, Queued(position=3))
    queued = await until(service, run_id, ANN, lambda s: s.record.state == "queued")
    assert queued.record.position == 3
    executor.put(run_id, started())
    running = await until(service, run_id, ANN, lambda s: s.record.state == "running")
    assert running.record.position is None
    assert running.record.device == "cpu"
    executor.put(run_id, output("hello"), outcome())
    ended = await until(service, run_id, ANN, lambda s: s.has_ended)
    assert [o.text for o in ended.trace.outputs] == ["hello"]
    assert ended.num_events == 3


async def test_run_goes_on_without_anybody_following(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_id = await service.start(ANN, new_run())
    follower = await service.follow(run_id, "ann")
    await anext(follower)
    await follower.aclose()  # type: ignore[attr-defined]
    executor.put(run_id, started(), output("later"), outcome())
    ended = await until(service, run_id, ANN, lambda s: s.has_ended)
    assert [o.text for o in ended.trace.outputs] == ["later"]


async def test_snapshot_does_not_change_when_the_run_goes_on(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_id = await service.start(ANN, new_run())
    executor.put(run_id, started(), output("a"))
    early = await until(service, run_id, ANN, lambda s: s.num_events == 2)
    executor.put(run_id, output("b"), outcome())
    await until(service, run_id, ANN, lambda s: s.has_ended)
    assert [o.text for o in early.trace.outputs] == ["a"]


async def test_run_of_another_learner_is_not_found(service: RunService) -> None:
    run_id = await service.start(ANN, new_run())
    for ask in (service.get, service.cancel, service.follow):
        with pytest.raises(RunNotFound):
            await ask(run_id, "bob")


async def test_run_without_learner_is_found_by_whoever_knows_its_id(service: RunService) -> None:
    run_id = await service.start(NOBODY, new_run())
    assert (await service.get(run_id, "bob")).record.run_id == run_id


async def test_crashed_engine_ends_the_run_as_engine_failure(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_id = await service.start(ANN, new_run())
    executor.put(run_id, started(), output("before"))
    executor.crash(run_id)
    ended = await until(service, run_id, ANN, lambda s: s.has_ended)
    assert ended.trace.outcome is not None
    assert ended.trace.outcome.status == "engine_failure"
    assert [d.code for d in ended.trace.outcome.diagnosis] == ["engine-failure"]
    assert [o.text for o in ended.trace.outputs] == ["before"]


async def test_one_run_more_than_allowed_is_refused_and_others_are_not(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_ids = [await service.start(ANN, new_run()) for _ in range(3)]
    with pytest.raises(TooManyRuns) as refused:
        await service.start(ANN, new_run())
    assert refused.value.limit == 3
    await service.start(BOB, new_run())
    executor.put(run_ids[0], outcome())
    await until(service, run_ids[0], ANN, lambda s: s.has_ended)
    await service.start(ANN, new_run())


async def test_starts_at_once_count_each_other(tmp_path: Path, executor: ScriptedExecutor) -> None:
    async with open_service(tmp_path, executor, RunPolicy(runs_per_learner=2)) as service:
        results = await asyncio.gather(
            *(service.start(ANN, new_run()) for _ in range(5)), return_exceptions=True
        )
    assert sum(isinstance(result, TooManyRuns) for result in results) == 3


async def test_running_a_cell_again_cancels_its_earlier_run_only(
    service: RunService, executor: ScriptedExecutor
) -> None:
    first = await service.start(ANN, new_run("x"))
    other_cell = await service.start(ANN, new_run("y"))
    other_learner = await service.start(BOB, new_run("x"))
    await service.start(ANN, new_run("x"))
    ended = await until(service, first, ANN, lambda s: s.has_ended)
    assert ended.trace.outcome is not None
    assert ended.trace.outcome.status == "cancelled"
    assert not (await service.get(other_cell, "ann")).has_ended
    assert not (await service.get(other_learner, "bob")).has_ended


async def test_engine_that_cannot_isolate_refuses_runs_and_says_why(tmp_path: Path) -> None:
    executor = ScriptedExecutor(SandboxUnavailable("No namespaces.", "Allow them."))
    async with open_service(tmp_path, executor) as service:
        with pytest.raises(SandboxUnavailable, match=r"No namespaces\. Allow them\."):
            await service.start(ANN, new_run())
        assert service.warmup.problem is not None


async def test_full_queue_refuses_further_runs(tmp_path: Path, executor: ScriptedExecutor) -> None:
    policy = RunPolicy(runs_per_learner=9, max_waiting=2)
    async with open_service(tmp_path, executor, policy) as service:
        run_ids = [await service.start(ANN, new_run()) for _ in range(2)]
        with pytest.raises(QueueFull):
            await service.start(BOB, new_run())
        executor.put(run_ids[0], started())
        await until(service, run_ids[0], ANN, lambda s: s.record.state == "running")
        await service.start(BOB, new_run())


async def test_run_waits_for_the_warming_engine_and_the_request_does_not(tmp_path: Path) -> None:
    executor = ScriptedExecutor()
    executor.warm = asyncio.Event()
    async with open_service(tmp_path, executor) as service:
        run_id = await service.start(ANN, new_run())
        assert executor.refs == []
        assert not (await service.get(run_id, "ann")).has_ended
        executor.warm.set()
        await service.warmup.settled()
        async with asyncio.timeout(10):
            await executor.submitted.wait()
        executor.put(run_id, started(), outcome())
        ended = await until(service, run_id, ANN, lambda s: s.has_ended)
    assert ended.trace.outcome is not None
    assert ended.trace.outcome.status == "ok"


async def test_ended_run_is_found_after_a_restart_with_the_same_events(tmp_path: Path) -> None:
    executor = ScriptedExecutor()
    async with open_service(tmp_path, executor) as service:
        run_id = await service.start(ANN, new_run("x"))
        executor.put(run_id, started(), output("kept"), outcome())
        before = await until(service, run_id, ANN, lambda s: s.has_ended)
    other = ScriptedExecutor()
    async with open_service(tmp_path, other) as service:
        assert await service.get(run_id, "ann") == before
        assert await service.last_of_cells("ann", "lesson") == {"x": before}
    assert other.refs == []


async def leave_unfinished(folder: Path, run_id: str) -> None:
    """What a crash leaves: rows without an end, and nobody to write one."""
    database = open_database(f"sqlite+aiosqlite:///{folder / 'academy.sqlite3'}")
    await database.migrate()
    writer = EventWriter(database)
    writer.start()
    row = RunRow(
        id=run_id,
        learner_id=None,
        lesson_id="lesson",
        cell_id="x",
        source="print()",
        world_size=2,
        device="auto",
        wall_limit_s=20.0,
        created_at=now(),
    )
    await RunStore(database).insert(row)
    payloads = [encode(started()), encode(output("kept"))]
    await writer.append(
        [EventRow(run_id=run_id, position=n, payload=line) for n, line in enumerate(payloads)]
    )
    await writer.close()
    await database.close()


async def test_run_left_unfinished_by_a_crash_becomes_engine_failure_once(tmp_path: Path) -> None:
    await leave_unfinished(tmp_path, "run")
    seen = []
    for _ in range(2):
        async with open_service(tmp_path, ScriptedExecutor()) as service:
            seen.append(await service.get("run", "ann"))
    assert seen[0] == seen[1]
    assert seen[0].trace.outcome is not None
    assert seen[0].trace.outcome.status == "engine_failure"
    assert [o.text for o in seen[0].trace.outputs] == ["kept"]
    assert seen[0].num_events == 3


async def test_stopping_the_server_ends_its_runs_as_engine_failure(tmp_path: Path) -> None:
    executor = ScriptedExecutor()
    async with open_service(tmp_path, executor) as service:
        run_id = await service.start(ANN, new_run("x"))
    async with open_service(tmp_path, ScriptedExecutor()) as service:
        snapshot = await service.get(run_id, "ann")
        assert snapshot.trace.outcome is not None
        assert snapshot.trace.outcome.status == "engine_failure"


async def test_lines_resume_at_a_position_with_exactly_the_rest(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_id = await service.start(ANN, new_run())
    executor.put(run_id, started(), *(output(str(n), seq=n) for n in range(500)), outcome())
    every = [item async for item in await service.lines(run_id, "ann", 0)]
    assert [position for position, _ in every] == list(range(1, 503))
    rest = [item async for item in await service.lines(run_id, "ann", 400)]
    assert rest == every[400:]


async def test_follower_who_comes_back_sees_only_what_is_new(
    service: RunService, executor: ScriptedExecutor
) -> None:
    run_id = await service.start(ANN, new_run())
    executor.put(run_id, started(), output("a"), output("b", seq=1), outcome())
    await until(service, run_id, ANN, lambda s: s.has_ended)
    steps = [step async for step in await service.follow(run_id, "ann", after=2)]
    assert [(step.output_from, step.snapshot.num_events) for step in steps] == [(1, 4)]


async def test_followers_come_to_their_end_when_the_server_stops(
    service: RunService,
) -> None:
    run_id = await service.start(ANN, new_run())
    steps = await service.follow(run_id, "ann")
    await anext(steps)
    service.close_streams()
    async with asyncio.timeout(1):
        assert [step async for step in steps] == []
