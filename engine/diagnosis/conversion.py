"""Rules for SyncBatchNorm layers that synchronise nothing."""

from collections.abc import Iterator

from engine.diagnosis.observed import observed, ranks, text, whole
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args


def conversion_unused(case: Case) -> Iterator[Diagnosis]:
    """A batch norm trained although another layer had been made for it, which never ran."""
    for seen in observed(case, "unconverted")[:1] if case.program.world_size > 1 else ():
        line = whole(seen, "convert_line")
        args: Args = {"line": line, "layer": text(seen, "layer")}
        yield say("conversion-unused", args, line=line)


def alone_in_group(case: Case) -> Iterator[Diagnosis]:
    """A layer's group has one rank, while the model around it is trained on several."""
    groups = [ranks(case, o) for n in ("wrapped", "initial-shards") for o in observed(case, n)]
    size = max((len(group) for group in groups), default=1)
    for seen in observed(case, "alone-in-group")[:1] if size > 1 else ():
        args: Args = {"line": seen.line, "layer": text(seen, "layer"), "num": size}
        yield say("syncbn-alone", args, line=seen.line, rank=seen.rank)
