"""Reads one YAML file into a model, with every mistake at its line and column.

May import ruamel.yaml and pydantic. A file from a stranger is bounded before it is parsed: size,
depth, no aliases.
"""

import difflib
import types
from pathlib import Path as FilePath
from typing import Annotated, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from ruamel.yaml.reader import ReaderError

from app.schema.positions import Document, Path
from app.schema.problems import LessonError, Problem

MAX_FILE_BYTES = 1 << 20
MAX_DEPTH = 24
MAX_PROBLEMS = 50

_Model = TypeVar("_Model", bound=BaseModel)
_WANTED = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list",
    "dict_type": "must be a map",
    "model_type": "must be a map of keys",
    "model_attributes_type": "must be a map of keys",
    "string_too_short": "must not be empty",
}


def read_yaml(path: FilePath, shown_name: str) -> Document:
    """Parse a file. Raises: LessonError with one problem."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _single(shown_name, 0, 0, f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_FILE_BYTES:
        raise _single(shown_name, 0, 0, f"has {len(raw)} bytes; at most {MAX_FILE_BYTES}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n")
        raise _single(shown_name, line, 0, "is not UTF-8 text") from None
    try:
        _refuse_bombs(text, shown_name)
        root = YAML(typ="rt").load(text)
    except LessonError:
        raise
    except MarkedYAMLError as error:
        # At the end of the file the mistake lies where the unfinished thing began.
        is_at_end = "end of stream" in (error.problem or "")
        first, second = error.problem_mark, error.context_mark
        mark = (second or first) if is_at_end else (first or second)
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise _single(shown_name, line, column, _yaml_words(error)) from None
    except ReaderError as error:
        line = text[: error.position].count("\n")
        raise _single(shown_name, line, 0, "has a character that YAML does not allow") from None
    except (YAMLError, ValueError, RecursionError) as error:
        first = str(error).partition("\n")[0] or "it cannot be parsed"
        raise _single(shown_name, 0, 0, f"is not YAML: {first}") from None
    if not isinstance(root, CommentedMap):
        raise _single(shown_name, 0, 0, "must be a map of keys, like `id: my-lesson`")
    return Document(file=shown_name, root=root)


def _yaml_words(error: MarkedYAMLError) -> str:
    problem = (error.problem or error.context or "it cannot be parsed").partition("\n")[0]
    if "found character '\\t'" in problem or "\\t" in problem:
        return "is not YAML: indent with spaces, not with tabs"
    return f"is not YAML: {problem}"


def _refuse_bombs(text: str, shown_name: str) -> None:
    """Aliases can multiply a small file, and deep nesting exhausts the parser."""
    depth = 0
    for event in YAML(typ="rt").parse(text):
        mark = event.start_mark
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            message = "anchors and aliases (& and *) are not allowed: write the text out"
            raise _single(shown_name, mark.line, mark.column, message)
        if isinstance(event, CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _single(shown_name, mark.line, mark.column, "is nested too deeply")
        elif isinstance(event, CollectionEndEvent):
            depth -= 1


def validate(document: Document, model: type[_Model]) -> _Model:
    """The file as a model. Raises: LessonError with every mistake."""
    try:
        return model.model_validate(_plain(document.root))
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = [_problem(document, model, detail) for detail in details[:MAX_PROBLEMS]]
        raise LessonError(tuple(sorted(set(problems)))) from None


def _plain(node: object) -> object:
    """ruamel's subclasses of dict, list, str and int as plain ones, which strict mode wants."""
    if isinstance(node, dict):
        return {_plain(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    if isinstance(node, bool) or node is None:
        return node
    for kind in (str, int, float):
        if isinstance(node, kind):
            return kind(node)
    return str(node)


def _problem(document: Document, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    path: Path = tuple(part for part in detail["loc"] if part != "[key]")
    name = f"`{path[-1]}`" if path else "the file"
    match detail["type"]:
        case "missing":
            return document.problem(path[:-1], f"the key {name} is missing here")
        case "extra_forbidden":
            return document.problem(path, _unknown_key(model, path), at_key=True)
        case "value_error":
            return document.problem(path, str(detail["ctx"]["error"]))
        case "literal_error":
            message = f"{name} must be one of {detail['ctx']['expected']}"
        case "string_pattern_mismatch":
            message = f"{name} must be lower-case letters, digits and hyphens, like `my-lesson`"
        case kind:
            message = f"{name} {_WANTED.get(kind, detail['msg'].lower())}"
    return document.problem(path, message)


def _unknown_key(model: type[BaseModel], path: Path) -> str:
    known = _fields_at(model, path[:-1])
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"keys here are {', '.join(known)}"
    return f"unknown key `{path[-1]}`: {hint}"


def _fields_at(model: type[BaseModel], path: Path) -> list[str]:
    """Names of the keys that the model allows at a path."""
    here: object = model
    for part in path:
        here = _unwrap(here)
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(str(part))
            here = field.annotation if field else None
        else:
            arguments = get_args(here)
            here = arguments[-1] if arguments else None
    here = _unwrap(here)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return list(here.model_fields)
    return []


def _unwrap(annotation: object) -> object:
    """The type behind Annotated and `| None`."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            inner = [a for a in get_args(annotation) if a is not type(None)]
            annotation = inner[0]
        else:
            return annotation


def _single(file: str, line: int, column: int, message: str) -> LessonError:
    problem = Problem(file=file, line=line + 1, column=column + 1, message=message)
    return LessonError((problem,))
