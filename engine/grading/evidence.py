"""What a check is told of a run <-> bytes. May import received, wire, trace and the leaves.

A line of JSON, the program's source, the run's events as JSON lines, and what each rank exported.
The facts that ranks told come last through `engine.wire` and `frames`: nothing is executed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.errors import WireError
from engine.events import Event, Outcome, Status
from engine.grading.frames import Value, decode_values
from engine.grading.received import ExportState, RankExport
from engine.program import MAX_EVIDENCE_BYTES, Program
from engine.trace import Trace, fold
from engine.wire import decode, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a check may know of one run."""

    status: Status
    world_size: int
    source: str
    export_limit_bytes: int
    trace: Trace
    states: tuple[ExportState, ...]
    """Whether each rank handed out its variables."""
    exports: tuple[Mapping[str, Value], ...]
    """By rank; empty where the state says so."""


def encode_evidence(
    program: Program, trace: Trace, outcome: Outcome, exports: Sequence[RankExport]
) -> bytes:
    """One run, for its check. Raises: WireError when that is too much."""
    source = program.source.encode("utf-8", "surrogatepass")
    events = "".join(encode(event) + "\n" for event in _events(trace, outcome)).encode("ascii")
    header = {
        "status": outcome.status,
        "world_size": program.simulated_ranks or program.world_size,
        "export_limit_bytes": program.limits.export_bytes,
        "source_bytes": len(source),
        "events_bytes": len(events),
        "exports": [{"state": e.state, "num_bytes": len(e.body)} for e in exports],
    }
    line = json.dumps(header, separators=(",", ":")).encode() + b"\n"
    evidence = b"".join((line, source, events, *(export.body for export in exports)))
    if len(evidence) > MAX_EVIDENCE_BYTES:
        raise WireError("there is more to say of the run than a check may be told")
    return evidence


def _events(trace: Trace, outcome: Outcome) -> list[Event]:
    found: list[Event] = [] if trace.started is None else [trace.started]
    found += trace.outputs
    found += trace.collectives
    found += trace.statistics
    found += trace.memory
    found += trace.peaks.values()
    found += trace.notes
    return [*found, outcome]


def decode_evidence(data: bytes) -> Evidence:
    """The evidence of a run, in the process that checks it. Raises: WireError."""
    line, _, rest = data.partition(b"\n")
    header = json.loads(line)  # the executor's own words
    source_end = header["source_bytes"]
    events_end = source_end + header["events_bytes"]
    lines = rest[source_end:events_end].splitlines()
    states, exports, at = [], [], events_end
    for said in header["exports"]:
        end = at + said["num_bytes"]
        states.append(said["state"])
        exports.append(decode_values(rest[at:end]) if said["state"] == "given" else {})
        at = end
    return Evidence(
        status=header["status"],
        world_size=header["world_size"],
        source=rest[:source_end].decode("utf-8", "surrogatepass"),
        export_limit_bytes=header["export_limit_bytes"],
        trace=fold(decode(line) for line in lines),
        states=tuple(states),
        exports=tuple(exports),
    )
