"""Validators for bytes of strangers: strict, in bounded time, without exotic numbers.

May import pydantic. pydantic by itself goes through all of a line and keeps a record of every fault
in it; 64 KiB of empty objects then cost 0.6 s and 160 MiB. Here a list ends with its first fault.
"""

from typing import Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, SchemaValidator

from engine.errors import WireError

MAX_COUNT = 1 << 62
"""Every whole number is below it, and above its negative: it fits wherever it may be stored."""
_MOST_FAULTS_SAID = 32
T = TypeVar("T")


class Reader(Generic[T]):
    """Makes a T of one line of JSON, or a WireError."""

    def __init__(self, adapter: TypeAdapter[T], *, may_lack: frozenset[str] = frozenset()) -> None:
        """may_lack names fields whose numbers may be NaN or infinite."""
        self._validator = SchemaValidator(
            cast(CoreSchema, _bounded(adapter.core_schema, may_lack, is_finite=True))
        )

    def read(self, line: bytes) -> T:
        """The value of one line. Raises: WireError."""
        try:
            return cast(T, self._validator.validate_json(line, strict=True))
        except ValidationError as error:
            raise WireError(_reason(error)) from None


def _reason(error: ValidationError) -> str:
    """Where and what the first fault is, without a word of the line itself."""
    if error.error_count() > _MOST_FAULTS_SAID:  # each takes a record of its own to be said
        return f"line: {error.error_count()} faults"
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part)[:40] for part in first["loc"])
    return f"{where or 'line'}: {first['type']}"


def _bounded(schema: object, may_lack: frozenset[str], *, is_finite: bool) -> object:
    """The same schema with bounds on numbers, its lists ending with their first fault."""
    if isinstance(schema, list):
        return [_bounded(part, may_lack, is_finite=is_finite) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "dataclass-field":
        is_finite = schema["name"] not in may_lack
    copied = {
        key: part if key == "metadata" else _bounded(part, may_lack, is_finite=is_finite)
        for key, part in schema.items()
    }
    match schema.get("type"):
        case "tuple":
            copied["fail_fast"] = True
        case "float":
            copied["allow_inf_nan"] = not is_finite
        case "int":
            copied |= {"gt": -MAX_COUNT, "lt": MAX_COUNT}
    return copied
