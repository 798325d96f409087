"""Whose run is next: the policy by properties, and the executor on it with real runs."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Outcome, Output
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.executor.queue import FairQueue
from engine.program import Program
from tests.engine.conftest import collect

Run = tuple[str, int]
"""A learner and the number of their run."""

learners = st.sampled_from(["ann", "bob", "cem", "dee"])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), learners),
        st.tuples(st.just("take"), st.just("")),
        st.tuples(st.just("remove"), learners),
    ),
    max_size=80,
)


class Played:
    """A queue after some operations, with what a fair one must have kept to."""

    def __init__(self) -> None:
        self.queue: FairQueue[Run] = FairQueue()
        self.added: list[Run] = []
        self.taken: list[Run] = []
        self.removed: list[Run] = []
        self.most_in_between = 0
        """The most runs of one other learner that were served while somebody waited for a turn."""
        self._numbers: Counter[str] = Counter()
        self._served_since: dict[str, Counter[str]] = defaultdict(Counter)

    def waiting_of(self, learner: str) -> list[Run]:
        return [run for run in self.queue if run[0] == learner]

    def add(self, learner: str) -> None:
        if not self.waiting_of(learner):
            self._served_since[learner] = Counter()
        self._numbers[learner] += 1
        run = (learner, self._numbers[learner])
        self.added.append(run)
        self.queue.add(run, learner)

    def take(self) -> None:
        run = self.queue.take()
        if run is None:
            return
        self.taken.append(run)
        self._served_since[run[0]] = Counter()
        for learner in {other for other, _ in self.queue} - {run[0]}:
            self._served_since[learner][run[0]] += 1
            self.most_in_between = max(self.most_in_between, *self._served_since[learner].values())

    def remove(self, learner: str) -> None:
        for run in self.waiting_of(learner)[-1:]:
            self.queue.remove(run)
            self.removed.append(run)


def played(steps: list[tuple[str, str]]) -> Played:
    state = Played()
    for what, learner in steps:
        match what:
            case "add":
                state.add(learner)
            case "take":
                state.take()
            case _:
                state.remove(learner)
    return state


@given(operations)
def test_nothing_is_lost_and_nothing_comes_twice(steps: list[tuple[str, str]]) -> None:
    state = played(steps)
    waiting = list(state.queue)
    assert len(state.queue) == len(waiting)
    assert Counter(state.added) == Counter([*state.taken, *state.removed, *waiting])
    assert set(Counter(state.added).values()) <= {1}
    assert all(run in state.queue for run in waiting)
    assert not any(run in state.queue for run in state.taken)


@given(operations)
def test_runs_of_one_learner_keep_their_order(steps: list[tuple[str, str]]) -> None:
    state = played(steps)
    for learner in ("ann", "bob", "cem", "dee"):
        own = [number for who, number in [*state.taken, *state.queue] if who == learner]
        assert own == sorted(own)


@given(operations)
def test_nobody_waits_for_two_runs_of_another_learner(steps: list[tuple[str, str]]) -> None:
    assert played(steps).most_in_between <= 1


@given(operations)
def test_runs_are_taken_in_the_order_that_is_told(steps: list[tuple[str, str]]) -> None:
    queue = played(steps).queue
    told = list(queue)
    assert [queue.take() for _ in told] == told
    assert queue.take() is None


@given(operations, st.sets(st.integers(1, 5)))
def test_run_that_cannot_start_keeps_its_place(
    steps: list[tuple[str, str]], stuck: set[int]
) -> None:
    queue = played(steps).queue
    told = list(queue)
    taken = queue.take(lambda run: run[1] not in stuck)
    assert taken == next((run for run in told if run[1] not in stuck), None)
    left = [run for run in queue if taken is None or run[0] != taken[0]]
    assert left == [run for run in told if taken is None or run[0] != taken[0]]


def test_runs_without_a_learner_come_in_the_order_of_their_arrival() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(5):
        queue.add(number)
    assert list(queue) == [0, 1, 2, 3, 4]


def test_what_does_not_wait_cannot_be_removed() -> None:
    queue: FairQueue[int] = FairQueue()
    with pytest.raises(ValueError, match="does not wait"):
        queue.remove(1)


# ------------------------------------------------------------------ the executor
FOR_EVER = Program(source='print("on", flush=True)\nwhile True: pass\n', world_size=1)
SHORT = Program(source="pass\n", world_size=1)


@pytest.fixture(scope="module")
async def single() -> AsyncIterator[LocalExecutor]:
    """An executor with one slot: who is served next is who starts next."""
    executor = LocalExecutor(slots=1, num_parked=1)
    await executor.start()
    yield executor
    await executor.close()


async def hold(executor: LocalExecutor, name: str) -> RunRef:
    """Take one slot until the run is cancelled."""
    ref = RunRef(run_id=name)
    await executor.submit(FOR_EVER, ref, learner=name)
    async for item in executor.stream(ref):
        if isinstance(item, Output):
            break
    return ref


async def submit_all(executor: LocalExecutor, names: list[str]) -> list[RunRef]:
    """One run per name, `learner-number`."""
    refs = [RunRef(run_id=name) for name in names]
    for ref in refs:
        await executor.submit(SHORT, ref, learner=ref.run_id.partition("-")[0])
    return refs


async def last_position(executor: LocalExecutor, ref: RunRef) -> int:
    """The position that the run was told last; the run still waits."""
    items = executor._runs[ref].items
    positions = [item.position for item in list(items._queue) if isinstance(item, Queued)]  # type: ignore[attr-defined]
    return int(positions[-1])


async def test_learners_take_turns_and_are_told_so(single: LocalExecutor) -> None:
    holder = await hold(single, "holder")
    names = ["greedy-1", "greedy-2", "greedy-3", "greedy-4", "late-1", "later-1", "late-2"]
    refs = await submit_all(single, names)
    order = ["greedy-1", "late-1", "later-1", "greedy-2", "late-2", "greedy-3", "greedy-4"]
    told = {ref.run_id: await last_position(single, ref) for ref in refs}
    assert sorted(told, key=told.__getitem__) == order
    assert sorted(told.values()) == list(range(7))
    ended: list[str] = []

    async def wait_for(ref: RunRef) -> None:
        assert (await collect(single, ref)).outcome.status == "ok"
        ended.append(ref.run_id)

    await single.cancel(holder)
    async with asyncio.timeout(60):
        await asyncio.gather(*map(wait_for, refs))
    assert ended == order


async def test_position_is_told_once_until_it_changes(single: LocalExecutor) -> None:
    holder = await hold(single, "once-holder")
    first, second = await submit_all(single, ["ann-once", "bob-once"])
    for ref in await submit_all(single, ["cem-once", "dee-once"]):
        await single.cancel(ref)
    await single.cancel(first)
    await single.cancel(holder)
    items = [item async for item in single.stream(second)]
    positions = [item.position for item in items if isinstance(item, Queued)]
    assert positions == [1, 0]
    assert all(later < earlier for earlier, later in pairwise(positions))


async def test_never_more_runs_at_once_than_slots(executor: LocalExecutor) -> None:
    source = (
        "import time\nprint(time.monotonic_ns())\nsum(range(10**6))\nprint(time.monotonic_ns())"
    )
    refs = [RunRef(run_id=f"at-once-of-{number}") for number in range(7)]
    for ref in refs:
        await executor.submit(Program(source=source, world_size=1), ref, learner=ref.run_id)
    ran = await asyncio.gather(*(collect(executor, ref) for ref in refs))
    spans = [tuple(map(int, one.text(0).split())) for one in ran]
    assert max(sum(a <= begin < b for a, b in spans) for begin, _ in spans) <= 2


# ------------------------------------------------------------------ cancelled
async def cancelled(executor: LocalExecutor, ref: RunRef) -> bool:
    async with asyncio.timeout(20):
        return (await collect(executor, ref)).outcome.status == "cancelled"


async def test_cancelled_while_it_waits(single: LocalExecutor) -> None:
    holder = await hold(single, "wait-holder")
    first, second = await submit_all(single, ["ann-wait", "bob-wait"])
    await single.cancel(first)
    assert await cancelled(single, first)
    assert await last_position(single, second) == 0
    await single.cancel(holder)
    assert (await collect(single, second)).outcome.status == "ok"


async def test_slot_that_comes_after_the_cancellation_is_given_up(single: LocalExecutor) -> None:
    await single.wait_parked()
    ref = RunRef(run_id="given-up")
    await single.submit(FOR_EVER, ref)
    await single.cancel(ref)
    assert await cancelled(single, ref)
    (other,) = await submit_all(single, ["after-given-up"])
    assert (await collect(single, other)).outcome.status == "ok"


async def test_cancelled_while_it_runs_and_while_it_ends(single: LocalExecutor) -> None:
    ref = RunRef(run_id="ends")
    await single.submit(SHORT, ref)
    statuses = []
    async for item in single.stream(ref):
        await single.cancel(ref)
        await single.cancel(ref)
        if isinstance(item, Outcome):
            statuses.append(item.status)
    assert len(statuses) == 1
    assert statuses[0] in ("cancelled", "ok")
    await single.cancel(ref)
    (other,) = await submit_all(single, ["after-the-end"])
    assert (await collect(single, other)).outcome.status == "ok"
