"""What a JSON Schema says against a value: as much of the standard as pydantic writes.

A keyword that is not known here fails, so that none is passed over.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NOTES = {"title", "description", "default", "$schema", "$defs"}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def complaints(schema: dict[str, Any], value: object) -> list[str]:
    """Everything that is wrong with the value, each with its path."""
    return list(_complaints(schema, value, schema["$defs"], ""))


def _complaints(
    schema: Mapping[str, Any], value: object, shared: Mapping[str, Any], path: str
) -> Iterator[str]:
    for keyword, wanted in schema.items():
        if keyword == "$ref":
            yield from _complaints(shared[wanted.removeprefix("#/$defs/")], value, shared, path)
        elif keyword == "anyOf":
            if all(list(_complaints(option, value, shared, path)) for option in wanted):
                yield f"{path}: none of anyOf"
        elif keyword == "type":
            if not _is(value, wanted):
                yield f"{path}: no {wanted}"
        elif keyword not in _NOTES:
            yield from _bounds(keyword, wanted, value, path)
    if isinstance(value, dict):
        yield from _members(schema, value, shared, path)
    if isinstance(value, list) and "items" in schema:
        for number, entry in enumerate(value):
            yield from _complaints(schema["items"], entry, shared, f"{path}/{number}")


def _is(value: object, kind: str) -> bool:
    is_truth = isinstance(value, bool)
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not is_truth)


def _members(
    schema: Mapping[str, Any], value: Mapping[str, object], shared: Mapping[str, Any], path: str
) -> Iterator[str]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    yield from (f"{path}: no {key}" for key in schema.get("required", []) if key not in value)
    for key, member in value.items():
        here = f"{path}/{key}"
        yield from _complaints(schema.get("propertyNames", {}), key, shared, here)
        if key in known:
            yield from _complaints(known[key], member, shared, here)
        elif others is False:
            yield f"{here}: unknown"
        elif others is not True:
            yield from _complaints(others, member, shared, here)


def _bounds(keyword: str, wanted: Any, value: Any, path: str) -> Iterator[str]:
    match keyword:
        case "properties" | "additionalProperties" | "required" | "propertyNames" | "items":
            is_kept = True  # asked of what is in the value
        case "enum":
            is_kept = value in wanted
        case "const":
            is_kept = value == wanted
        case "pattern":
            is_kept = isinstance(value, str) and re.search(wanted, value) is not None
        case "minLength" | "minItems" | "minProperties":
            is_kept = len(value) >= wanted
        case "maxLength" | "maxItems" | "maxProperties":
            is_kept = len(value) <= wanted
        case "minimum":
            is_kept = value >= wanted
        case "maximum":
            is_kept = value <= wanted
        case "exclusiveMinimum":
            is_kept = value > wanted
        case _:
            raise AssertionError(f"the keyword {keyword} is not known here")
    if not is_kept:
        yield f"{path}: {keyword} {wanted}"
