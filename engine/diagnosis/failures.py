"""Rules for programs that raise or die: they point at the first rank that failed."""

import re
import signal

from engine.diagnosis import partners
from engine.diagnosis.partners import detail_of, signal_name
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args
from engine.program import MIB


def not_python(case: Case) -> Diagnosis | None:
    """The program does not compile."""
    failure = case.first_failure
    if failure is None or failure.frames or failure.type not in _SYNTAX_ERRORS:
        return None
    if failure.line is None:
        return None
    args: Args = {"line": failure.line, "detail": failure.message}
    return say("syntax-error", args, line=failure.line)


_SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")


def out_of_memory(case: Case) -> Diagnosis | None:
    """Python or torch could not allocate within the limit."""
    end = case.first_failed
    if case.outcome.status != "out_of_memory" or end is None:
        return None
    args = {"rank": end.rank, "limit_mib": case.program.limits.memory_bytes // MIB}
    return say("out-of-memory", args, line=end.failure.line if end.failure else None, rank=end.rank)


def raised(case: Case) -> Diagnosis | None:
    """An exception; where it has no line of the program, only its rank is named."""
    end = case.first_failed
    if case.outcome.status != "error" or end is None or end.failure is None:
        return None
    failure = end.failure
    detail = detail_of(failure)
    args: Args = {"rank": end.rank, "type": failure.type, "line": failure.line, "detail": detail}
    code = "exception" if failure.line is not None else "exception-outside"
    return say(code, args, line=failure.line, rank=end.rank)


_LOCAL_RANK = re.compile(r"add_argument\(\s*[\"']--local[-_]rank")


def died(case: Case) -> Diagnosis | None:
    """A rank ended without an exception: by a signal, or with an exit code of its own."""
    end = case.first_failed
    if end is None or end.failure is not None or end.exit is None:
        return None
    if case.outcome.status == "sandbox_violation":
        return say("sandbox-violation", {"rank": end.rank}, rank=end.rank)
    if case.outcome.status != "error":
        return None
    if end.exit == -signal.SIGABRT and (aborted := partners.aborted(case, end.rank)) is not None:
        return aborted
    if end.exit < 0:
        return say(
            "rank-killed", {"rank": end.rank, "signal": signal_name(-end.exit)}, rank=end.rank
        )
    if end.exit == 2 and _LOCAL_RANK.search(case.program.source):
        return say("local-rank-argument", {"rank": end.rank}, rank=end.rank)
    return say("rank-exited", {"rank": end.rank, "exit": end.exit}, rank=end.rank)
