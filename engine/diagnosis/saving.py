"""Rules for checkpoints that hold a part of the model, or an old state."""

from collections.abc import Iterator

from engine.diagnosis.observed import keyed, name_ranks, observed, text, whole
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args


def saved_parts(case: Case) -> Iterator[Diagnosis]:
    """Shards were saved by fewer ranks than hold some, or all to one file."""
    saves = [o for o in observed(case, "saved-shards") if o.line is not None]
    for line in sorted({o.line for o in saves if o.line is not None}):
        found = [o for o in saves if o.line == line]
        writers = {o.rank for o in found}
        size = max(whole(o, "size") or 1 for o in found)
        shared = any(len({o.rank for o in same}) > 1 for _, same in keyed(found, "path"))
        args: Args = {
            "line": line,
            "who": name_ranks(writers),
            "num_shards": whole(found[0], "num_shards"),
            "size": size,
            "key": text(found[0], "key") or "-",
        }
        if shared:
            yield say("shards-in-one-file", args, line=line)
        elif len(writers) < size:
            yield say("saved-own-shards", args, line=line, rank=min(writers))


def saved_old_state(case: Case) -> Iterator[Diagnosis]:
    """ZeRO's state was gathered once and given out after more steps."""
    for seen in observed(case, "old-state")[:1]:
        args: Args = {
            "line": seen.line,
            "gather_line": whole(seen, "gather_line"),
            "num_steps": whole(seen, "steps"),
            "now": whole(seen, "now"),
        }
        yield say("zero-state-old", args, line=seen.line, rank=seen.rank)
