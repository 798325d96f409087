"""Carries out a check: runs its source on the evidence of a run, and reports what it found.

Runs in a fresh rank that has never run a learner's program; may import torch, evidence and tensors.
The check's author is trusted with the verdict, not with the machine: the sandbox is that of a run.
"""

import time
import types
from collections.abc import Callable, Collection
from typing import get_args

from engine.errors import WireError
from engine.events import Status
from engine.facts import Args, CheckProblem, CheckResult
from engine.failure import describe
from engine.grading.crosschecks import failed
from engine.grading.evidence import decode_evidence
from engine.grading.judged import JudgedRun, Unfit
from engine.grading_messages import PROBLEMS
from engine.messages import render
from engine.program import Program
from engine.reports import Report, VerdictReport
from engine.wire import MAX_REPORT_BYTES, encode

_NEVER_ACCEPTED = ("cancelled", "engine_failure")
_MAX_DETAIL = 400


class _InvalidCheck(Exception):
    """The check itself is wrong: says how."""


def carry_out(
    program: Program,
    evidence: bytes,
    main: types.ModuleType,
    report: Callable[[Report], None],
) -> int:
    """Run the check `program` in `main` and report its verdict; returns the exit code."""
    verdict = _verdict(program, evidence, main)
    if len(encode(verdict)) >= MAX_REPORT_BYTES:
        verdict = _broken("check-invalid", {"detail": "its results are too long to be passed on"})
    report(verdict)
    return 0


def _verdict(program: Program, evidence: bytes, main: types.ModuleType) -> VerdictReport:
    filename = str(main.__file__)
    try:
        run = JudgedRun(decode_evidence(evidence))
        return _found(_judge(program.source, filename, main, run))
    except WireError as error:
        return _broken("check-invalid", {"detail": error.reason})
    except _InvalidCheck as error:
        return _broken("check-invalid", {"detail": str(error)})
    except BaseException as error:  # noqa: BLE001 - a check may raise anything, SystemExit too
        failure = describe(error, filename)
        args: Args = {
            "type": failure.type,
            "line": failure.line,
            "detail": failure.message[:_MAX_DETAIL],
        }
        return _broken("check-raised", args)  # the executor passes on no more than its place


def _judge(
    source: str, filename: str, main: types.ModuleType, run: JudgedRun
) -> tuple[CheckResult, ...]:
    """The results of the check. Raises: whatever the check raises, and _InvalidCheck."""
    exec(compile(source, filename, "exec", dont_inherit=True), main.__dict__)  # noqa: S102
    accepted = _accepted(getattr(main, "ACCEPTS", ("ok",)))
    if run.status not in accepted:
        args: Args = {"status": run.status, "accepted": ", ".join(accepted)}
        return (failed("run-not-accepted", args),)
    check = getattr(main, "check", None)
    if not callable(check):
        raise _InvalidCheck("it defines no function `check`")
    try:
        returned = check(run)
    except Unfit as unfit:
        return (*run.results, failed(unfit.code, unfit.said))
    if returned is not None:
        raise _InvalidCheck("`check` returned something; results are given by `run.expect`")
    if not run.results:
        raise _InvalidCheck("`check` looked at nothing: it never called `run.expect`")
    return run.results


def _accepted(accepts: object) -> tuple[str, ...]:
    possible = [status for status in get_args(Status) if status not in _NEVER_ACCEPTED]
    if not isinstance(accepts, Collection) or isinstance(accepts, str) or not accepts:
        raise _InvalidCheck("ACCEPTS is no tuple of statuses")
    if not all(status in possible for status in accepts):
        raise _InvalidCheck(f"ACCEPTS may name: {', '.join(possible)}")
    return tuple(accepts)


def _found(results: tuple[CheckResult, ...]) -> VerdictReport:
    return VerdictReport(
        at_ns=time.monotonic_ns(),
        is_passed=all(result.is_passed for result in results),
        results=results,
    )


def _broken(code: str, args: Args) -> VerdictReport:
    message = render(PROBLEMS[code], args)
    problem = CheckProblem(code=code, message=message, args=args)
    return VerdictReport(at_ns=time.monotonic_ns(), is_passed=False, results=(), problem=problem)
