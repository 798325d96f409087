"""Where in a YAML file a value stands. May import ruamel.yaml."""

from dataclasses import dataclass

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from app.schema.problems import Problem

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the file to a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file: plain values, and the tree that knows positions."""

    file: str
    root: CommentedMap

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """A problem at a value, or at its key; where that is missing, at what should hold it."""
        line, column = self._position(path, at_key=at_key)
        return Problem(file=self.file, line=line + 1, column=column + 1, message=message)

    def _position(self, path: Path, *, at_key: bool) -> tuple[int, int]:
        node: object = self.root
        found = (0, 0)
        for depth, part in enumerate(path):
            is_last = depth == len(path) - 1
            if isinstance(node, CommentedMap) and part in node:
                found = node.lc.key(part) if is_last and at_key else node.lc.value(part)
                node = node[part]
            elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
                found = node.lc.item(part)
                node = node[part]
            else:
                break
        return found
