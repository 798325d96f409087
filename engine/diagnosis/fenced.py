"""The rules for programs that ask for what a machine without namespaces cannot give them."""

import re

from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis

_NO_SOCKET = re.compile(
    r"Address family not supported|failed to connect to any network address|"
    r"no network address|server socket has failed",
    re.I,
)
_NO_PROCESS = re.compile(r"Function not implemented")


def not_within_a_fence(case: Case) -> Diagnosis | None:
    """The first failure of a fenced run is a socket or a process that it does not get."""
    failure, end, started = case.first_failure, case.first_failed, case.trace.started
    if started is None or started.tier != "fenced":
        return None
    if case.outcome.limit == "wall":
        return _waits_for_a_socket(case)
    if failure is None or end is None:
        return None
    code = ""
    if _NO_SOCKET.search(failure.message):
        code = "fenced-no-sockets"
    elif failure.type == "OSError" and _NO_PROCESS.search(failure.message):
        code = "fenced-no-processes"
    if not code:
        return None
    args = {"rank": end.rank, "line": failure.line}
    return say(code, args, line=failure.line, rank=end.rank)


def _waits_for_a_socket(case: Case) -> Diagnosis | None:
    """torch asks for one again and again, and says so on stderr only."""
    said = "".join(e.text for e in case.trace.outputs if e.stream == "stderr")
    if not _NO_SOCKET.search(said):
        return None
    end = case.outcome.ranks[0]
    line = end.stack[0].line if end.stack else None
    return say("fenced-no-sockets", {"rank": 0, "line": line}, line=line, rank=0)
