"""From a run that has ended to its verdict, on the trusted side. May import evidence, crosschecks.

The executor brings the means to carry out a program in a fresh slot; never torch.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from engine.errors import EngineError
from engine.events import Outcome, Verdict
from engine.facts import Args, CheckProblem, CheckResult
from engine.grading.crosschecks import cross_check
from engine.grading.evidence import encode_evidence
from engine.grading.received import RankExport
from engine.grading_messages import PROBLEMS
from engine.messages import render
from engine.program import MIB, Check, Program
from engine.trace import Trace

_log = logging.getLogger(__name__)
_NEVER_JUDGED = ("cancelled", "engine_failure")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """What the trusted side knows of a run that has ended."""

    program: Program
    trace: Trace
    outcome: Outcome
    exports: Sequence[RankExport]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """How a check's own run ended, and what it said."""

    outcome: Outcome
    verdict: Verdict | None


CarryOut = Callable[[Program, bytes], Awaitable[CheckRun]]
"""Runs a program, with evidence, in a slot that no other program has used. Raises: EngineError."""


async def judge(check: Check, run: EndedRun, carry_out: CarryOut) -> Verdict:
    """The verdict on a run; a pass only from a check that ran to its end and found all well."""
    status = run.outcome.status
    if status in _NEVER_JUDGED:
        return broken("run-not-judged", {"status": status})
    contradictions = await asyncio.to_thread(cross_check, run.program, run.trace, run.outcome)
    if contradictions:
        return _not_passed(contradictions)
    try:
        evidence = await asyncio.to_thread(
            encode_evidence, run.program, run.trace, run.outcome, run.exports
        )
        found = await carry_out(check_program(check, len(evidence)), evidence)
    except (EngineError, ValueError, TimeoutError, OSError) as error:
        _log.error("a check could not be carried out: %s", error)
        return broken("check-not-started", {})
    return _conclude(check, found)


def check_program(check: Check, evidence_bytes: int) -> Program:
    """The program of one process that the check is. Raises: ValueError where it cannot be one."""
    return Program(
        source=check.source,
        world_size=1,
        device="cpu",
        name=check.name,
        limits=check.limits,
        detail="off",
        evidence_bytes=evidence_bytes,
    )


def _conclude(check: Check, found: CheckRun) -> Verdict:
    verdict, status = found.verdict, found.outcome.status
    if status == "timeout":
        return broken("check-timeout", {"limit_s": round(check.limits.wall_s)})
    if status == "out_of_memory":
        return broken("check-memory", {"limit_mib": check.limits.memory_bytes // MIB})
    if status == "engine_failure":
        return broken("check-not-started", {})
    if status != "ok" or verdict is None:
        return broken("check-died", {"status": status})
    if verdict.problem is not None:
        return _told_to_learners(check, verdict.problem)
    all_hold = bool(verdict.results) and all(result.is_passed for result in verdict.results)
    is_passed = verdict.is_passed and all_hold
    return dataclasses.replace(verdict, rank=-1, seq=0, at_ns=0, is_passed=is_passed)


def _told_to_learners(check: Check, said: CheckProblem) -> Verdict:
    """What a check raised may hold what it compares with: its words are for its author only."""
    _log.warning("%s: %s %s", check.name, said.code, dict(said.args))
    if said.code != "check-raised":
        return broken(said.code, said.args)
    return broken(said.code, {name: said.args.get(name) for name in ("type", "line")})


def _not_passed(results: tuple[CheckResult, ...]) -> Verdict:
    return Verdict(rank=-1, seq=0, at_ns=0, is_passed=False, results=results)


def broken(code: str, args: Args) -> Verdict:
    """No verdict, and why: never a pass, and no attempt is counted."""
    message = render(PROBLEMS[code], args)
    said = CheckProblem(code=code, message=message, args=args)
    return Verdict(rank=-1, seq=0, at_ns=0, is_passed=False, results=(), problem=said)
