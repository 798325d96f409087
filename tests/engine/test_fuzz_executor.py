"""The executor before supervisors that speak nonsense: each run ends as the engine's failure, and
the next one is well. The bad supervisors are real peers on real sockets, in place of the parked.
"""

import asyncio
import socket

import pytest

from engine.events import Outcome, Output, RankEnd, Started
from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.executor.parking import PARKED, why_not_parked
from engine.executor.slots import Slot
from engine.program import Limits, Program
from engine.supervisor.link import BEGUN
from engine.wire import encode
from tests.engine.conftest import collect
from tests.engine.fuzzing import corpus

QUICK = Program(source="print(1)\n", world_size=2, limits=Limits(wall_s=5.0))
STARTED = Started(rank=-1, seq=0, at_ns=0, world_size=2, device="cpu", tier="walled")
SAYS = Output(rank=0, seq=0, at_ns=1, stream="stdout", text="hello")
STRANGER = Output(rank=5, seq=0, at_ns=1, stream="stdout", text="I am not here")
DONE = Outcome(
    rank=-1,
    seq=1,
    at_ns=2,
    status="ok",
    ranks=tuple(RankEnd(rank=rank, exit=0, cpu_s=0.1, peak_bytes=1) for rank in range(2)),
    diagnosis=(),
    elapsed_s=0.1,
    dropped_events=0,
)


def line(item: Started | Output | Outcome) -> bytes:
    return encode(item).encode() + b"\n"


BEGINS = line(STARTED) + BEGUN + line(SAYS)
BAD = {
    **{f"event-{name}": BEGINS + data + b"\n" for name, data in corpus("events").items()},
    "half an outcome": BEGINS + line(DONE)[:40],
    "endless line": BEGINS + b"x" * (9 << 20),
    "rank that is not there": BEGINS + line(STRANGER) + line(DONE),
    "deep header of an export": BEGINS + b'{"export":' + b"[" * 100_000 + b"\n",
    "export of a stranger": BEGINS + b'{"export":9,"state":"given","num_bytes":1}\n',
    "export too large": BEGINS + b'{"export":0,"state":"given","num_bytes":99999999999}\n',
    "export cut short": BEGINS + b'{"export":0,"state":"given","num_bytes":100}\nabc',
    "verdict on a run without check": BEGINS
    + b'{"kind":"verdict","rank":0,"seq":9,"at_ns":1,"is_passed":true,"results":[]}\n',
    "hangs up": BEGINS,
}


async def lend(executor: LocalExecutor, said: bytes) -> asyncio.Task[None]:
    """Park a supervisor in front of all others; it says so much whatever it hears, and hangs up."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=4 << 20)
    zygote = executor._warm._zygote
    assert zygote is not None
    zygote._parked.appendleft(Slot(reader=reader, writer=writer, let_go=zygote._let_go))
    theirs.setblocking(False)

    async def speak() -> None:
        loop = asyncio.get_running_loop()
        with theirs:
            await loop.sock_recv(theirs, 1 << 16)
            try:
                await loop.sock_sendall(theirs, said)
            except ConnectionError:
                return  # the executor has had enough of it

    return asyncio.create_task(speak())


async def outcome_of(executor: LocalExecutor, name: str) -> Outcome:
    ref = RunRef(run_id=name)
    await executor.submit(QUICK, ref)
    async with asyncio.timeout(60):
        return (await collect(executor, ref)).outcome


async def test_bad_supervisors_cost_their_own_run_only(executor: LocalExecutor) -> None:
    for name, said in BAD.items():
        speaking = await lend(executor, said)
        assert (await outcome_of(executor, name)).status == "engine_failure", name
        await speaking
    assert (await outcome_of(executor, "after")).status == "ok"


async def test_only_the_first_of_two_outcomes_counts(executor: LocalExecutor) -> None:
    speaking = await lend(executor, BEGINS + line(DONE) + line(DONE) + b"more\n")
    assert (await outcome_of(executor, "two")).status == "ok"
    await speaking
    assert (await outcome_of(executor, "after two")).status == "ok"


async def test_run_whose_supervisor_dies_before_it_has_begun_is_made_again(
    executor: LocalExecutor,
) -> None:
    for said in (line(STARTED), b'{"failed": 1}\n', b"x" * (9 << 20)):
        speaking = await lend(executor, said)
        assert (await outcome_of(executor, f"again {said[:9]!r}")).status == "ok"
        await speaking


@pytest.mark.parametrize(
    "said", [b"", b"null\n", b"[]\n", b"[" * 9000, b"\xff\n", b'{"failed":1}\n', b"{}\n"]
)
def test_supervisor_that_does_not_say_that_it_parked_has_not(said: bytes) -> None:
    assert said != PARKED
    assert why_not_parked(said).startswith("the supervisor")


async def test_rule_that_breaks_leaves_nobody_waiting(
    executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("engine.executor.local.diagnose", breaks)
    assert (await outcome_of(executor, "broken rule")).status == "ok"
