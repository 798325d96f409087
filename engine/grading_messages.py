"""English sentences about graded runs, with named arguments. Standard library only.

RESULTS are about a program, PROBLEMS about a check that came to no verdict of its own.
"""

from collections.abc import Mapping
from types import MappingProxyType

RESULTS: Mapping[str, str] = MappingProxyType(
    {
        "run-not-accepted": (
            "The run ended with the status {status}. It counts only when it ends with: {accepted}."
        ),
        "export-missing": (
            "The program has no variable `{name}` at its end (rank {rank}). What is compared is "
            "the value of that variable: give the result this name."
        ),
        "export-unsupported": (
            "`{name}` is of the type {type} (rank {rank}), which cannot be compared. Make it a "
            "tensor, a number, a text, or a list, tuple or dict of those."
        ),
        "export-too-large": (
            "The variables that are compared have more than {limit_mib} MiB over all ranks, or "
            "too many parts, so they were not handed out. Use smaller ones."
        ),
        "export-malformed": (
            "What rank {rank} handed out at its end is no value that can be read, so it does not "
            "count."
        ),
        "export-not-tensor": "`{name}` must be a tensor, and is of the type {type} (rank {rank}).",
        "export-not-number": "`{name}` must be a number, and is of the type {type} (rank {rank}).",
        "export-shape": "`{name}` has the shape {actual} instead of {wanted} (rank {rank}).",
        "export-dtype": "`{name}` has the dtype {actual} instead of {wanted} (rank {rank}).",
        "export-not-whole": "The parts of `{name}` on the ranks do not make one whole tensor.",
        "trace-dropped": (
            "{count} trace lines of this run were not what the engine itself writes. Such a trace "
            "proves nothing, so the run does not count."
        ),
        "trace-gap": (
            "The trace of rank {rank} misses call {number} of the group {group}. Such a trace "
            "proves nothing, so the run does not count."
        ),
        "trace-differs": (
            "The ranks {ranks} report call {number} of the group {group} differently. Such a trace "
            "proves nothing, so the run does not count."
        ),
        "trace-one-sided": (
            "Rank {rank} reports {op} from or to rank {peer}, which reports nothing that fits. "
            "Such a trace proves nothing, so the run does not count."
        ),
        "trace-memory": (
            "Rank {rank} reports a peak of {told_mib} MiB, and {measured_mib} MiB were measured "
            "from outside. Such a trace proves nothing, so the run does not count."
        ),
    }
)

PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "run-not-judged": (
            "The run was not judged, because it did not come to its own end (status {status}). "
            "This attempt does not count."
        ),
        "check-raised": (
            "The exercise's check failed ({type} on its line {line}). This attempt does not count: "
            "tell your instructor."
        ),
        "check-invalid": (
            "The exercise's check is wrong: {detail}. This is not your program's fault, and this "
            "attempt does not count."
        ),
        "check-timeout": (
            "The exercise's check took longer than its limit of {limit_s} s. This attempt does not "
            "count."
        ),
        "check-memory": (
            "The exercise's check needed more memory than its limit of {limit_mib} MiB. This "
            "attempt does not count."
        ),
        "check-died": (
            "The exercise's check ended without a verdict (status {status}). This attempt does "
            "not count."
        ),
        "check-not-started": (
            "The exercise's check could not be started. This attempt does not count; run it again."
        ),
    }
)

VERDICTS: Mapping[str, str] = MappingProxyType({**RESULTS, **PROBLEMS})
"""Every sentence that a verdict may hold besides those of a check's author."""
