"""Rules for what ranks train on: the same order every epoch, or the same data on every rank."""

from collections.abc import Iterator

from engine.diagnosis.observed import (
    any_differ,
    by_rank,
    digest,
    keyed,
    observed,
    ranks,
    text,
    whole,
)
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis, Observation
from engine.facts import Args


def order_repeats(case: Case) -> Iterator[Diagnosis]:
    """A shuffling sampler was never told of the new epoch."""
    for seen in observed(case, "repeated-order")[:1]:
        args: Args = {"line": seen.line, "epoch": whole(seen, "epoch")}
        yield say("set-epoch-missing", args, line=seen.line)


def orders_differ(case: Case) -> Iterator[Diagnosis]:
    """Samplers that split one order between ranks must all have the same order."""
    for passes in _passes(case):
        orders = {whole(o, "order") for o in passes}
        sizes = {whole(o, "replicas") for o in passes}
        if None in orders or len(orders) < 2 or sizes != {len(passes)}:
            continue
        other = next(o for o in passes if whole(o, "order") != whole(passes[0], "order"))
        args: Args = {
            "line": passes[0].line,
            "order": whole(passes[0], "order"),
            "rank": other.rank,
            "other_order": whole(other, "order"),
            "first_rank": passes[0].rank,
        }
        yield say("sampler-seeds-differ", args, line=passes[0].line, rank=other.rank)
        return


def same_data_everywhere(case: Case) -> Iterator[Diagnosis]:
    """Every rank of a data-parallel group went through the same samples."""
    for passes in _passes(case):
        line = passes[0].line
        is_same = not any_differ(digest(o) for o in passes)
        if not is_same or not all(whole(o, "is_varied") for o in passes):
            continue
        if len({whole(o, "numel") for o in passes}) > 1 or not whole(passes[0], "numel"):
            continue
        args: Args = {"line": line, "batches": whole(passes[0], "batches")}
        if all(text(o, "sampler") == "other" for o in passes):
            yield say("same-data-on-all-ranks", args, line=line)
            return
        own = {whole(o, "replica_rank") for o in passes}
        if len(own) == 1:
            replicas, rank = whole(passes[0], "replicas"), own.pop()
            args = {"line": line, "replicas": replicas, "replica_rank": rank}
            yield say("sampler-same-rank", args, line=line)
            return


def _passes(case: Case) -> Iterator[list[Observation]]:
    """The same pass over a DataLoader on all ranks of a data-parallel group, by rank."""
    groups = {ranks(case, o) for n in ("wrapped", "initial-shards") for o in observed(case, n)}
    for _, found in keyed(observed(case, "data-pass"), "number"):
        seen = by_rank(found)
        for group in sorted(groups):
            if len(group) > 1 and all(rank in seen for rank in group):
                yield [seen[rank] for rank in group]
