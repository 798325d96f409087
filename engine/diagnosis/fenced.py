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
    if failure is None or end is None or started is None or started.tier != "fenced":
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
