"""What several ranks hold alike and step on: the same optimizer's parameters on each of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.diagnosis.observed import any_differ, by_rank, digest, keyed, observed, ranks, whole
from engine.diagnosis.rule import Case
from engine.events import Observation


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
    def is_ignored(self) -> bool:
        """Whether a DDP wrapper was told to leave the parameters alone."""
        return self.kind.startswith("ignored ")

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
