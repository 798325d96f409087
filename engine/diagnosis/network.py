"""The rule for programs that try to reach the network, which runs do not have."""

import re

from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis

_UNREACHABLE = re.compile(
    r"Network is unreachable|name resolution|Name or service not known|"
    r"nodename nor servname|Failed to resolve|getaddrinfo failed",
    re.I,
)


def no_network(case: Case) -> Diagnosis | None:
    """The first failure is an address that cannot be resolved or reached."""
    failure, end = case.first_failure, case.first_failed
    if failure is None or end is None or not _UNREACHABLE.search(failure.message):
        return None
    args = {"rank": end.rank, "line": failure.line}
    return say("no-network", args, line=failure.line, rank=end.rank)
