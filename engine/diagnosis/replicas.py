"""Rules for replicas that drift apart: what ranks hold alike at first and not in the end."""

import math
from collections.abc import Callable, Iterator, Mapping

from engine.diagnosis.observed import (
    Digest,
    any_differ,
    by_rank,
    differ,
    digest,
    keyed,
    name_ranks,
    number,
    observed,
    text,
    whole,
)
from engine.diagnosis.replica import Replica, replicas
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis, Observation
from engine.facts import Args

Cause = Callable[[Replica], Diagnosis | None]


def drifted(case: Case) -> Iterator[Diagnosis]:
    """Wrapped parameters that end differently, by the most specific cause that was seen."""
    told: set[tuple[str, int | None]] = set()
    for replica in replicas(case):
        if replica.wrapper is None:
            continue
        if not replica.ends_apart and not (replica.is_zero and replica.has_own_gradients):
            continue
        found = next(d for cause in _CAUSES if (d := cause(replica)) is not None)
        if (found.code, found.line) not in told:
            told.add((found.code, found.line))
            yield found


def _unsynced(replica: Replica) -> Diagnosis | None:
    for seen in replica.seen("stepped-unsynced"):
        if text(seen, "how") == "no_sync":
            args: Args = {"line": seen.line, "forward_line": whole(seen, "forward_line")}
            return say("stepped-under-no-sync", args, line=seen.line, rank=seen.rank)
    return None


def _bypassed(replica: Replica) -> Diagnosis | None:
    for seen in replica.seen("inner-forward"):
        if whole(seen, "num_forwards"):
            continue
        line = whole(seen, "forward_line") or seen.line
        args: Args = {"line": line, "wrap_line": whole(seen, "wrap_line")}
        code = "ddp-bypassed" if whole(seen, "is_alive") else "ddp-result-unused"
        return say(code, args, line=line, rank=seen.rank)
    return None


def _unmanaged(replica: Replica) -> Diagnosis | None:
    for seen in replica.seen("unmanaged"):
        args: Args = {
            "line": whole(seen, "wrap_line"),
            "parameter": text(seen, "parameter"),
        }
        code = "unfrozen-after-ddp" if text(seen, "reason") == "unfrozen" else "added-after-ddp"
        return say(code, args, line=whole(seen, "wrap_line"), rank=seen.rank)
    return None


def _loaded_by_some(replica: Replica) -> Diagnosis | None:
    """Some ranks loaded weights into a wrapped model, the others did not."""
    loaded = by_rank(replica.seen("loaded"))
    if not loaded or len(loaded) == len(replica.group) or not replica.begins_apart:
        return None
    first = loaded[min(loaded)]
    args: Args = {"who": name_ranks(loaded), "line": first.line}
    return say("loaded-on-some-ranks", args, line=first.line, rank=first.rank)


def _changed_by_some(replica: Replica) -> Diagnosis | None:
    """Ranks were equal when wrapped, and no longer at the first step."""
    wrapped = by_rank(replica.seen("wrapped"))
    if not replica.begins_apart or not all(r in wrapped for r in replica.group):
        return None
    line = wrapped[replica.group[0]].line
    if any_differ(digest(wrapped[r]) for r in replica.group):
        return say("wrapped-unequal", {"line": line}, line=line)
    first = replica.steps[0]
    changed = [r for r in replica.group if differ(digest(wrapped[r]), digest(first[r]))]
    if not changed:
        return None
    args: Args = {"who": name_ranks(changed), "line": line}
    return say("changed-after-ddp", args, line=line, rank=changed[0])


def _rates_differ(replica: Replica) -> Diagnosis | None:
    for step in replica.steps:
        rates = {r: number(o, "rate") for r, o in step.items()}
        first = rates[replica.group[0]]
        other = next((r for r, rate in rates.items() if rate != first), None)
        if other is not None:
            args: Args = {
                "line": step[other].line,
                "rank": other,
                "rate": _short(rates[other]),
                "first_rank": replica.group[0],
                "first_rate": _short(first),
            }
            return say("learning-rates-differ", args, line=step[other].line, rank=other)
    return None


def _short(rate: float | None) -> float | None:
    return None if rate is None else float(f"{rate:.4g}")


def _steps_differ(replica: Replica) -> Diagnosis | None:
    """Some ranks stepped more often than others."""
    counts = {r: whole(o, "steps") for r, o in replica.ends.items() if r in replica.group}
    if len(counts) < len(replica.group) or len(set(counts.values())) < 2:
        return None
    few = min(counts, key=lambda r: counts[r] or 0)
    many = max(counts, key=lambda r: counts[r] or 0)
    args: Args = {
        "line": replica.line,
        "rank": few,
        "num_steps": counts[few],
        "other_rank": many,
        "other_steps": counts[many],
    }
    return say("step-counts-differ", args, line=replica.line, rank=few)


def _partly_bypassed(replica: Replica) -> Diagnosis | None:
    for seen in replica.seen("inner-forward"):
        line = whole(seen, "forward_line")
        if line and replica.has_own_gradients:
            args: Args = {"line": line, "wrap_line": whole(seen, "wrap_line")}
            return say("ddp-bypassed", args, line=line, rank=seen.rank)
    return None


def _own_gradients(replica: Replica) -> Diagnosis | None:
    for step in replica.steps:
        slopes = {r: digest(o, "gradient_") for r, o in step.items()}
        first = slopes[replica.group[0]]
        other = next((r for r in replica.group if differ(first, slopes[r])), None)
        if other is not None:
            seen = step[other]
            args: Args = {
                "line": seen.line,
                "step": whole(seen, "step"),
                "norm": _norm(first),
                "other_norm": _norm(slopes[other]),
                "rank": other,
                "first_rank": replica.group[0],
            }
            return say("gradients-differ", args, line=seen.line, rank=other)
    return None


def _norm(slopes: Digest) -> float:
    return round(math.sqrt(max(slopes.square or 0.0, 0.0)), 6)


def _otherwise(replica: Replica) -> Diagnosis:
    return say("replicas-differ", {"line": replica.line}, line=replica.line)


_CAUSES: tuple[Cause, ...] = (
    _unsynced,
    _bypassed,
    _unmanaged,
    _loaded_by_some,
    _changed_by_some,
    _rates_differ,
    _steps_differ,
    _partly_bypassed,
    _own_gradients,
    _otherwise,
)


def stepped_by_some(case: Case) -> Iterator[Diagnosis]:
    """Some ranks never stepped an optimizer of a wrapped or sharded model, or less often."""
    for (line, kind), found in keyed(observed(case, "end"), "made_line", "kind"):
        ends = by_rank(found)
        if not isinstance(line, int) or len(ends) != len(found) or kind == "plain":
            continue
        counts = {rank: whole(o, "steps") or 0 for rank, o in ends.items()}
        if len(ends) < case.program.world_size or len(set(counts.values())) < 2:
            continue
        if kind != "sharded" and (min(counts.values()) or not _any_apart(ends)):
            continue
        few = min(counts, key=lambda r: counts[r])
        most = max(counts.values())
        args: Args = {
            "line": line,
            "who": name_ranks(r for r, n in counts.items() if n == most),
            "num_steps": most,
            "rank": few,
            "other_steps": counts[few],
        }
        yield say("steps-on-some-ranks", args, line=line, rank=few)
        return


def _any_apart(ends: Mapping[int, Observation]) -> bool:
    return any_differ(digest(o) for o in ends.values())


def unsharded_beside_shards(case: Case) -> Iterator[Diagnosis]:
    """Parameters outside of every sharded unit are trained, and nobody averages their gradients."""
    for replica in replicas(case):
        if replica.wrapper is not None or replica.is_ignored or not replica.num_sharded:
            continue
        if not _is_left_behind(replica):
            continue
        for seen in replica.seen("unsharded")[:1]:
            args: Args = {
                "line": seen.line,
                "parameter": text(seen, "parameter") or "-",
                "by": text(seen, "by"),
            }
            yield say("unsharded-parameters", args, line=seen.line)


def ignored_but_trained(case: Case) -> Iterator[Diagnosis]:
    """Parameters that DDP was told to ignore are trained on each rank's own gradients."""
    for replica in replicas(case):
        if not replica.is_ignored or not _is_left_behind(replica):
            continue
        number_of = int(replica.kind.partition(" ")[2])
        for seen in observed(case, "ignoring"):
            if whole(seen, "wrapper") == number_of:
                args: Args = {"line": seen.line, "parameter": text(seen, "parameter") or "-"}
                yield say("ignored-by-ddp", args, line=seen.line)
                return


def _is_left_behind(replica: Replica) -> bool:
    """Whether replicas that began alike drift on their own gradients.

    Experts are meant to differ: they begin differently, or tokens travel between them.
    """
    if not replica.ends_apart or not replica.has_own_gradients or replica.begins_apart:
        return False
    return not any(c.op == "all_to_all" for c in replica.case.trace.collectives)


def zero_on_own_gradients(case: Case) -> Iterator[Diagnosis]:
    """ZeRO shares the steps, not the gradients: without DDP each rank's part follows its own."""
    for replica in replicas(case):
        if replica.wrapper is None and replica.is_zero and replica.has_own_gradients:
            yield say("zero-own-gradients", {"line": replica.line}, line=replica.line)
            return


def waiting_gradients(case: Case) -> Iterator[Diagnosis]:
    """A step while fully_shard still holds gradients back."""
    for seen in observed(case, "stepped-unsynced"):
        if text(seen, "how") != "no_sync":
            args: Args = {"line": seen.line, "how": text(seen, "how")}
            yield say("stepped-unreduced", args, line=seen.line, rank=seen.rank)
            return
