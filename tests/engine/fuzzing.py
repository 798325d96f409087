"""What the fuzz tests have in common: how long they dig, hostile bytes on file, and strategies.

`ACADEMY_FUZZ=deep` multiplies the number of examples. Strategies are made of the types' own
annotations, so that a new field or kind of report is fuzzed as soon as it exists.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_DEEPER = 25
MAX_COUNT = (1 << 62) - 1
Example = TypeVar("Example")


def corpus(folder: str) -> dict[str, bytes]:
    """Hostile bytes by the name of what is wrong with them."""
    files = sorted((Path(__file__).parent / "corpus" / folder).iterdir())
    return {file.name: file.read_bytes() for file in files}


def digging(num_examples: int) -> settings:
    """So many examples by default; a slow machine fails no test."""
    factor = _DEEPER if os.environ.get("ACADEMY_FUZZ") == "deep" else 1
    return settings(
        max_examples=num_examples * factor,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = TEXTS | st.sampled_from(["0", "1.bn", "model.0.weight", "float32", "all_reduce", "{x}"])
SMALL = st.integers(0, 4)
COUNTS = SMALL | st.integers(0, 1 << 20) | st.just(MAX_COUNT // 16)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def values_of(
    kind: type[Example], **fields: st.SearchStrategy[object]
) -> st.SearchStrategy[Example]:
    """Values of a dataclass, drawn from its annotations; `fields` say otherwise."""
    drawn = {name: fields.get(name, _of(hint, name)) for name, hint in get_type_hints(kind).items()}
    return st.builds(kind, **drawn)


def _of(hint: object, name: str) -> st.SearchStrategy[object]:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(parts)
    if origin in (Union, UnionType):
        return st.one_of([_of(part, name) for part in parts])
    if origin is tuple:
        return st.lists(_of(parts[0], name), min_size=name == "values", max_size=4).map(tuple)
    if origin is Mapping:
        return st.dictionaries(NAMES, _of(parts[1], name), max_size=4)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return values_of(hint)
    return _PLAIN[cast(type, hint)]


_PLAIN: Mapping[type, st.SearchStrategy[object]] = {
    int: COUNTS,
    str: NAMES,
    float: FLOATS,
    bool: st.booleans(),
    NoneType: st.none(),
}
