"""A graded run, and what judges it, for tests."""

from itertools import count

from engine.events import Outcome, Verdict
from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.program import Check, Limits, Program
from tests.engine.conftest import Ran, collect

GLOO = 'import torch\nimport torch.distributed as dist\ndist.init_process_group("gloo")\n'
WANTS_THREE = """
import torch
def check(run):
    for rank in range(run.world_size):
        w = run.tensor(rank, "w", shape=(4,), dtype=torch.float32)
        run.expect(f"sum-{rank}", torch.equal(w, torch.full((4,), 3.0)), "The sum is wrong.")
"""
LOOKS_AT_NOTHING_SPECIAL = "def check(run): run.expect('ran', True, 'It did not run.')\n"
_NUMBERS = count()


class Graded:
    """A graded run and its verdict, which came just before the outcome."""

    def __init__(self, ran: Ran) -> None:
        *_, verdict, outcome = ran.events
        assert isinstance(verdict, Verdict)
        assert isinstance(outcome, Outcome)
        assert [event.kind for event in ran.events].count("verdict") == 1
        assert [e.seq for e in ran.events if e.rank < 0] == list(range(outcome.seq + 1))
        self.ran = ran
        self.verdict = verdict
        self.outcome = outcome

    @property
    def failed(self) -> list[str]:
        return [result.id for result in self.verdict.results if not result.is_passed]

    @property
    def problem(self) -> str | None:
        return self.verdict.problem.code if self.verdict.problem else None


async def grade(
    executor: LocalExecutor,
    source: str,
    check: str | Check,
    *,
    exports: tuple[str, ...] = ("w",),
    ranks: int = 1,
    limits: Limits | None = None,
) -> Graded:
    """Run a program and have it judged."""
    ref = RunRef(run_id=f"graded-{next(_NUMBERS)}")
    program = Program(source=source, world_size=ranks, exports=exports, limits=limits or Limits())
    judge = Check(source=check) if isinstance(check, str) else check
    await executor.submit(program, ref, check=judge)
    return Graded(await collect(executor, ref))
