"""Rules for replicas that drift apart: what ranks hold alike at first and not in the end."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    ranks,
    text,
    whole,
)
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis, Observation
from engine.facts import Args


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """Parameters that a group of ranks holds each in full, and one optimizer updates."""

    case: Case
    optimizer: int
    kind: str
    group: tuple[int, ...]
    steps: Sequence[Mapping[int, Observation]]
    """Checked steps that all ranks of the group reported."""
    ends: Mapping[int, Observation]

    @property
    def wrapper(self) -> int | None:
        """The number of its DDP wrapper."""
        number_of = self.kind.removeprefix("wrapper ")
        return int(number_of) if number_of.isdecimal() else None

    @property
    def line(self) -> int | None:
        """Where it steps."""
        return self.steps[0][self.group[0]].line

    @property
    def ends_apart(self) -> bool:
        """Whether ranks hold different parameters in the end."""
        if all(rank in self.ends for rank in self.group):
            return any_differ(digest(self.ends[rank]) for rank in self.group)
        return any_differ(digest(o) for o in self.steps[-1].values())

    @property
    def begins_apart(self) -> bool:
        """Whether they did so before the first step."""
        return any_differ(digest(o) for o in self.steps[0].values())

    @property
    def has_own_gradients(self) -> bool:
        """Whether at some step ranks used different gradients."""
        return any(any_differ(digest(o, "gradient_") for o in s.values()) for s in self.steps)

    @property
    def is_zero(self) -> bool:
        """Whether ZeRO broadcasts the parameters after each step, so that they stay equal."""
        return whole(self.steps[0][self.group[0]], "zero") == 1

    @property
    def num_sharded(self) -> int:
        """How many shards the same optimizer updates."""
        return whole(self.steps[0][self.group[0]], "num_sharded") or 0

    def seen(self, name: str) -> list[Observation]:
        """Observations of a name about this optimizer or this wrapper, from this group."""
        about = ("optimizer", self.optimizer), ("wrapper", self.wrapper)
        return [
            o
            for o in observed(self.case, name)
            if o.rank in self.group and any(k in o.args and o.args[k] == v for k, v in about)
        ]


def replicas(case: Case) -> Iterator[Replica]:
    """Everything that several ranks hold in full and step on."""
    ends = observed(case, "end")
    for (optimizer, kind), found in keyed(observed(case, "step"), "optimizer", "kind"):
        groups = {ranks(case, o) for o in found}
        if not isinstance(optimizer, int) or not isinstance(kind, str):
            continue
        for group in sorted(groups):
            steps = [by_rank(same) for _, same in keyed(found, "step")]
            whole_steps = [s for s in steps if len(group) > 1 and all(r in s for r in group)]
            whole_steps = [{r: s[r] for r in group} for s in whole_steps]
            if not whole_steps or len({whole(o, "numel") for o in whole_steps[0].values()}) > 1:
                continue
            last = [
                o
                for o in ends
                if (o.args.get("optimizer"), o.args.get("kind")) == (optimizer, kind)
            ]
            yield Replica(
                case=case,
                optimizer=optimizer,
                kind=kind,
                group=group,
                steps=whole_steps,
                ends=by_rank(last),
            )


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


def unsharded_beside_shards(case: Case) -> Iterator[Diagnosis]:
    """Parameters outside of every sharded unit are trained, and nobody averages their gradients."""
    for replica in replicas(case):
        if replica.wrapper is not None or not replica.num_sharded:
            continue
        if not replica.ends_apart or not replica.has_own_gradients:
            continue
        for seen in replica.seen("unsharded")[:1]:
            args: Args = {
                "line": seen.line,
                "parameter": text(seen, "parameter") or "-",
                "by": text(seen, "by"),
            }
            yield say("unsharded-parameters", args, line=seen.line)


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
