"""Rules for programs that average gradients by hand, and for calls that nobody waited for."""

from collections.abc import Iterator

from engine.diagnosis.observed import number, observed, text, whole
from engine.diagnosis.replica import replicas
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis, Observation
from engine.facts import Args

_SAME_RATIO = 0.01


def reduced_wrongly(case: Case) -> Iterator[Diagnosis]:
    """The program reduces gradients itself, and replicas end apart all the same."""
    for replica in replicas(case):
        reduced = replica.seen("reduced-by-hand")
        if replica.wrapper is not None or replica.is_ignored or not reduced:
            continue
        if not replica.ends_apart:
            continue
        if len({o.rank for o in reduced}) < len(replica.group) or replica.num_sharded:
            continue
        early = [o for o in reduced if not whole(o, "is_late")]
        first = (early or reduced)[0]
        args: Args = {"line": replica.line, "reduce_line": first.line, "op": text(first, "op")}
        if not replica.has_own_gradients:
            if not replica.begins_apart:
                continue
            code = "averaged-unequal-replicas"
        elif not early:
            code = "gradients-reduced-late"
        else:
            code = "reduced-on-one-rank" if args["op"] == "reduce" else "reduced-unequal"
        yield say(code, args, line=first.line)
        return


def reduced_twice(case: Case) -> Iterator[Diagnosis]:
    """DDP has averaged, the program sums once more: gradients are as many times too large."""
    for seen in observed(case, "reduced-twice"):
        ratio, size = number(seen, "ratio"), whole(seen, "size")
        if ratio is None or size is None or size < 2:
            continue
        if abs(ratio - size) <= _SAME_RATIO * size:
            yield say("reduced-twice", {"line": seen.line, "ratio": size}, line=seen.line)
            return


def reduced_in_graph(case: Case) -> Iterator[Diagnosis]:
    """Backward went through a sum that autograd knows nothing of."""
    for seen in observed(case, "reduced-in-graph")[:1]:
        args: Args = {"line": seen.line, "size": whole(seen, "size")}
        code = "loss-averaged-twice" if whole(seen, "numel") == 1 else "reduced-in-graph"
        yield say(code, args, line=seen.line)


def _on_all_ranks(case: Case, name: str) -> list[Observation]:
    """The first of an observation, if every rank made it: else it was some rank's own business."""
    found = observed(case, name)
    return found[:1] if len({o.rank for o in found}) == case.program.world_size else []


def metric_lost(case: Case) -> Iterator[Diagnosis]:
    """A reduced value that nobody can read any more."""
    for seen in _on_all_ranks(case, "reduced-temporary"):
        args: Args = {"line": seen.line, "op": text(seen, "op")}
        yield say("reduced-temporary", args, line=seen.line)


def metric_summed_again(case: Case) -> Iterator[Diagnosis]:
    """One tensor under two names: each loop over the names sums it once more."""
    for seen in _on_all_ranks(case, "summed-again"):
        args: Args = {
            "line": seen.line,
            "first_line": whole(seen, "first_line"),
            "op": text(seen, "op"),
        }
        yield say("summed-again", args, line=seen.line)


def never_waited(case: Case) -> Iterator[Diagnosis]:
    """A call with async_op=True whose Work the program dropped."""
    for seen in observed(case, "never-waited")[:1]:
        args: Args = {"line": seen.line, "op": text(seen, "op")}
        yield say("never-waited", args, line=seen.line, rank=seen.rank)


def outputs_aliased(case: Case) -> Iterator[Diagnosis]:
    """Several ranks' values go into one tensor."""
    for seen in observed(case, "aliased-outputs")[:1]:
        args: Args = {"line": seen.line, "op": text(seen, "op"), "num": whole(seen, "num")}
        yield say("outputs-aliased", args, line=seen.line)
