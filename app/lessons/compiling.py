"""Whether text is Python. Standard library only."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncompilable:
    """Why a text is not Python; without a line where no single one is to blame."""

    line: int | None
    message: str

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


def why_not_python(source: str, name: str, *, is_part: bool = False) -> Uncompilable | None:
    """What is wrong with a program, or with a part of one that need only parse; else None."""
    flags = ast.PyCF_ONLY_AST if is_part else 0
    try:
        compile(source, name, "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        return Uncompilable(line=error.lineno or 1, message=error.msg)
    except (ValueError, RecursionError, MemoryError) as error:
        return Uncompilable(line=None, message=str(error) or "it is nested too deeply")
    return None
