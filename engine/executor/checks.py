"""The verdict on a run, before its outcome is told. May import runs and grading's `judging`.

The check is a run of its own in a slot of its own; its events are nobody's but the executor's.
"""

import dataclasses
from collections.abc import Awaitable, Callable

from engine.events import Outcome
from engine.executor.runs import SubmittedRun
from engine.grading.judging import CheckRun, EndedRun, broken, judge
from engine.program import Check, Program

Attempts = Callable[[SubmittedRun], Awaitable[Outcome]]
"""Carries out a run in slots of its own, to its outcome."""


async def judged(run: SubmittedRun, check: Check, outcome: Outcome, attempts: Attempts) -> Outcome:
    """Pass the verdict on; the outcome, which is `cancelled` if the run was while it was judged."""

    async def carry_out(program: Program, evidence: bytes) -> CheckRun:
        judging = SubmittedRun(program, run.ref, "cpu")
        judging.evidence = evidence
        run.judging = judging
        if run.is_cancelled:
            judging.cancel()
        ended = await attempts(judging)
        return CheckRun(outcome=ended, verdict=judging.trace.verdict)

    ended = EndedRun(
        program=run.program, trace=run.trace, outcome=outcome, exports=tuple(run.exports)
    )
    verdict = await judge(check, ended, carry_out)
    run.judging = None
    if run.is_cancelled and outcome.status != "cancelled":
        outcome = dataclasses.replace(outcome, status="cancelled")
        verdict = broken("run-not-judged", {"status": "cancelled"})
    run.put(dataclasses.replace(verdict, at_ns=outcome.at_ns))
    return outcome
