"""Rules for models that are sharded from the wrong values, and for what is done to their shards."""

from collections.abc import Iterator

from engine.diagnosis.observed import (
    any_differ,
    by_rank,
    digest,
    keyed,
    number,
    observed,
    ranks,
    text,
    whole,
)
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis, Observation
from engine.facts import Args

_SAME_NORM = 1e-4


def own_initial_values(case: Case) -> Iterator[Diagnosis]:
    """Ranks had different parameters when a unit was sharded, and nothing replaced them since."""
    for _, found in keyed(observed(case, "initial-shards"), "unit", "by", "ranks"):
        group, seen = ranks(case, found[0]), by_rank(found)
        if len(group) < 2 or not all(rank in seen for rank in group):
            continue
        if any_differ(digest(seen[rank]) for rank in group):
            first = seen[group[0]]
            args: Args = {
                "line": first.line,
                "by": text(first, "by"),
                "unit": text(first, "module"),
            }
            is_flat = text(first, "by") != "fully_shard"
            code = "unequal-before-fsdp" if is_flat else "unequal-before-shard"
            yield say(code, args, line=first.line)
            return


def untied(case: Case) -> Iterator[Diagnosis]:
    """One parameter went into two units, and each trains a copy of its own."""
    for seen in observed(case, "untied")[:1]:
        args: Args = {
            "line": seen.line,
            "first_line": whole(seen, "first_line"),
            "parameter": text(seen, "parameter") or "-",
            "by": text(seen, "by"),
        }
        yield say("weights-untied", args, line=seen.line)


def clipped_at_the_wrong_time(case: Case) -> Iterator[Diagnosis]:
    """Gradients were clipped too late, too early, or with the loss scale still on them."""
    for seen in observed(case, "clipped-late")[:1]:
        args: Args = {"line": seen.line, "step_line": whole(seen, "step_line")}
        yield say("clipped-late", args, line=seen.line)
    for seen in observed(case, "clipped-unsynced")[:1]:
        yield say("clipped-unsynced", {"line": seen.line}, line=seen.line)
    for seen in observed(case, "clipped-scaled")[:1]:
        args = {
            "line": seen.line,
            "max_norm": number(seen, "max_norm"),
            "scale": number(seen, "scale"),
        }
        yield say("clipped-scaled", args, line=seen.line)


def clipped_by_own_norm(case: Case) -> Iterator[Diagnosis]:
    """Each rank clipped its shards by a norm of its own."""
    per_rank: dict[int, list[Observation]] = {}
    for seen in observed(case, "clipped-shards"):
        per_rank.setdefault(seen.rank, []).append(seen)
    for same in zip(*per_rank.values(), strict=False):
        norms = [n for o in same if (n := number(o, "norm")) is not None]
        if len(norms) > 1 and max(norms) - min(norms) > _SAME_NORM * max(norms):
            args: Args = {
                "line": same[0].line,
                "norm": round(norms[0], 6),
                "other_norm": round(norms[1], 6),
                "rank": same[0].rank,
                "other_rank": same[1].rank,
            }
            yield say("clipped-by-own-norm", args, line=same[0].line)
            return
