"""Rules for runs that were stopped at a limit, and for our own failures."""

import signal

from engine.diagnosis.rule import Case, say, where_ranks_were
from engine.events import Diagnosis
from engine.program import MIB


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
            rank = end.rank if end else None
            return say("cpu-limit", {"rank": rank, "limit_s": limits.cpu_s}, rank=rank)
        case "memory":
            return say("memory-limit", {"limit_mib": limits.memory_bytes // MIB})
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
