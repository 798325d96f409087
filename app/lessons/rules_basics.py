"""What all rules share. May import schema."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from app.schema import Document, Path, Problem

Named = tuple[str, Path]
"""An id, and where it stands."""


class _HasId(Protocol):
    id: str


def ids_of(path: Path, key: str, entries: Iterable[_HasId]) -> list[Named]:
    """The ids of the list below a key."""
    return [(entry.id, (*path, key, number, "id")) for number, entry in enumerate(entries)]


def check_unique(document: Document, named: Iterable[Named], kind: str) -> Iterator[Problem]:
    """Ids that stand twice."""
    seen: set[str] = set()
    for name, path in named:
        if name in seen:
            yield document.problem(path, f"the {kind} id `{name}` is used twice")
        seen.add(name)
