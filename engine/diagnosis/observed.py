"""How rules read observations, which come from learner code's process: of any type, or missing.

May import trace and the leaves.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.diagnosis.rule import Case
from engine.events import Observation

_TOLERANCE = 1e-6
"""What float32 arithmetic in another order may change, relative to the norm of all values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Numbers that are equal where tensors are; None is a value that is no number."""

    numel: int
    total: float | None
    square: float | None


def observed(case: Case, name: str) -> list[Observation]:
    """The observations of a name, each rank's in its order."""
    found = [o for o in case.trace.observations if o.name == name]
    return sorted(found, key=lambda o: (o.rank, o.seq))


def text(observation: Observation, key: str) -> str:
    """An argument that is text; empty if it is not there."""
    value = observation.args.get(key)
    return value if isinstance(value, str) else ""


def whole(observation: Observation, key: str) -> int | None:
    """An argument that is a whole number."""
    value = observation.args.get(key)
    return value if isinstance(value, int) else None


def number(observation: Observation, key: str) -> float | None:
    """An argument that is a finite number."""
    value = observation.args.get(key)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def ranks(case: Case, observation: Observation) -> tuple[int, ...]:
    """The group that an observation names; all ranks where it names none."""
    world = range(case.program.world_size)
    named = [int(part) for part in text(observation, "ranks").split(",") if part.isdecimal()]
    return tuple(r for r in named if r in world) if named else tuple(world)


def digest(observation: Observation, prefix: str = "") -> Digest:
    """The digest that an observation carries."""
    return Digest(
        numel=whole(observation, "numel") or 0,
        total=number(observation, f"{prefix}total"),
        square=number(observation, f"{prefix}square"),
    )


def differ(one: Digest, other: Digest) -> bool:
    """Whether two digests of equally many values differ by more than rounding."""
    if one.numel != other.numel:
        return False
    if one.total is None or one.square is None or other.total is None or other.square is None:
        return False
    scale = max(one.square, other.square, 0.0)
    return (
        abs(one.total - other.total) > _TOLERANCE * math.sqrt(scale)
        or abs(one.square - other.square) > _TOLERANCE * scale
    )


def any_differ(digests: Iterable[Digest]) -> bool:
    """Whether any digest differs from the first."""
    found = list(digests)
    return any(differ(found[0], other) for other in found[1:])


def by_rank(observations: Iterable[Observation]) -> dict[int, Observation]:
    """The first observation of each rank."""
    found: dict[int, Observation] = {}
    for observation in observations:
        found.setdefault(observation.rank, observation)
    return found


def name_ranks(numbers: Iterable[int]) -> str:
    """ "rank 1" or "ranks 1, 2": a phrase that the app translates."""
    found = sorted(set(numbers))
    many = f"ranks {', '.join(map(str, found))}"
    return f"rank {found[0]}" if len(found) == 1 else many


def keyed(
    observations: Iterable[Observation], *keys: str
) -> Iterator[tuple[tuple[object, ...], list[Observation]]]:
    """Observations grouped by the values of some arguments, in order of appearance."""
    groups: dict[tuple[object, ...], list[Observation]] = {}
    for observation in observations:
        groups.setdefault(tuple(observation.args.get(k) for k in keys), []).append(observation)
    yield from groups.items()
