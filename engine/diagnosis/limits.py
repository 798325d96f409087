"""Rules for limits: those that stop a run, those whose calls fail; and for our own failures."""

import re
import signal
from collections.abc import Mapping
from types import MappingProxyType

from engine.diagnosis.observed import observed, text, whole
from engine.diagnosis.rule import Case, say, where_ranks_were
from engine.events import Diagnosis, RankEnd
from engine.facts import Args
from engine.program import MIB, NUM_DESCRIPTORS


def engine_failed(case: Case) -> Diagnosis | None:
    """The engine broke: never the learner's fault."""
    return say("engine-failure", {}) if case.outcome.status == "engine_failure" else None


def stopped_at_limit(case: Case) -> Diagnosis | None:
    """Names the limit, its value, and for time also where each rank was."""
    limits = case.program.limits
    match case.outcome.limit:
        case "wall" if case.outcome.status == "timeout":
            first = next((end for end in case.outcome.ranks if end.stack), None)
            return say(
                "wall-limit",
                {"limit_s": limits.wall_s, "where": where_ranks_were(case.outcome)},
                line=first.stack[0].line if first else None,
                rank=first.rank if first else None,
            )
        case "cpu":
            ended = (-signal.SIGXCPU, -signal.SIGKILL)
            end = next((end for end in case.outcome.ranks if end.exit in ended), None)
            if end is None:  # the watchdog stopped it: no single process had used it up
                together_s = limits.cpu_s * len(case.outcome.ranks)
                return say("cpu-limit-together", {"limit_s": together_s})
            return say("cpu-limit", {"rank": end.rank, "limit_s": limits.cpu_s}, rank=end.rank)
        case "memory":
            return say("memory-limit", {"limit_mib": limits.memory_bytes // MIB})
        case "scratch":
            return say(
                "scratch-limit",
                {
                    "limit_mib": limits.scratch_bytes // MIB,
                    "limit_files": limits.scratch_inodes,
                },
            )
        case "output":
            return say("output-limit", {"limit_mib": limits.output_bytes // MIB})
        case "trace":
            return say(
                "trace-limit",
                {
                    "limit_mib": limits.trace_bytes // MIB,
                    "limit_events": limits.trace_events,
                },
            )
        case _:
            return None


_CODES: Mapping[str, str] = MappingProxyType(
    {
        "processes": "process-limit",
        "descriptors": "descriptor-limit",
        "file-size": "file-size-limit",
        "scratch": "scratch-full",
        "inodes": "scratch-files-full",
    }
)
_IN_MIB = ("file-size", "scratch")
_MAX_VALUE = 1 << 53
_ABORTED_FOR = re.compile(r"terminate called[\s\S]{0,1000}Too many open files")


def failed_at_limit(case: Case) -> Diagnosis | None:
    """A call failed at a limit that ends no run, and the program failed because of that."""
    end = case.first_failed
    if case.outcome.status != "error" or end is None:
        return None
    if end.failure is None:
        return _aborted_without_descriptors(case, end)
    found = [o for o in observed(case, "limit-reached") if o.rank == end.rank]
    limit = text(found[-1], "limit") if found else ""
    value = whole(found[-1], "value") if found else None
    if limit not in _CODES or value is None or not 0 <= value < _MAX_VALUE:
        return None
    line = end.failure.line
    amount: Args = {"limit_mib": value // MIB} if limit in _IN_MIB else {"limit": value}
    args: Args = {"line": line, "rank": end.rank, **amount}
    return say(_CODES[limit], args, line=line, rank=end.rank)


def _aborted_without_descriptors(case: Case, end: RankEnd) -> Diagnosis | None:
    """A thread of gloo's could not accept a connection and ended the process without a word."""
    if end.exit != -signal.SIGABRT:
        return None
    texts = (o.text for o in case.trace.outputs if o.rank == end.rank and o.stream == "stderr")
    if not _ABORTED_FOR.search("".join(texts)):
        return None
    frame = end.stack[0] if end.stack else None
    line = frame.line if frame else None
    args: Args = {"line": line, "rank": end.rank, "limit": NUM_DESCRIPTORS}
    return say("descriptor-limit", args, line=line, rank=end.rank)
