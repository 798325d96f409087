"""The rule for SyncBatchNorm layers that were made and never used."""

from collections.abc import Iterator

from engine.diagnosis.observed import observed, text, whole
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args


def conversion_unused(case: Case) -> Iterator[Diagnosis]:
    """A batch norm trained although another layer had been made for it, which never ran."""
    for seen in observed(case, "unconverted")[:1] if case.program.world_size > 1 else ():
        line = whole(seen, "convert_line")
        args: Args = {"line": line, "layer": text(seen, "layer")}
        yield say("conversion-unused", args, line=line)
