"""Where in a YAML file a value stands. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.schema.problems import Problem

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the file to a value."""

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value begins; line and column count from 0."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file: its values, and where each of them and each key stands."""

    file: str
    root: dict[str, Value]
    values: Mapping[Path, Place]
    keys: Mapping[Path, Place]
    """Of every value that has a key, by the value's path."""

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """A problem at a value, or at its key; where that is missing, at what should hold it."""
        while path not in self.values:
            path = path[:-1]
        place = self.keys.get(path, self.values[path]) if at_key else self.values[path]
        return Problem(
            file=self.file, line=place.line + 1, column=place.column + 1, message=message
        )
