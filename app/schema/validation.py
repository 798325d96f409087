"""Checks a parsed file against its model, and says every mistake in a teacher's words.

May import pydantic.
"""

import difflib
import types
from typing import Annotated, TypeGuard, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from app.schema.basics import Entry
from app.schema.positions import Document, Path
from app.schema.problems import LessonError, Problem

MAX_PROBLEMS = 50

_Model = TypeVar("_Model", bound=BaseModel)


def validate(document: Document, model: type[_Model]) -> _Model:
    """The file as a model. Raises: LessonError with every mistake, at most MAX_PROBLEMS."""
    try:
        return model.model_validate(document.root)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = [_problem(document, model, detail) for detail in details[:MAX_PROBLEMS]]
        raise LessonError(tuple(sorted(set(problems)))) from None


def _problem(document: Document, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    is_key = detail["loc"][-1:] == ("[key]",)
    path: Path = detail["loc"][:-1] if is_key else detail["loc"]
    match detail["type"]:
        case "missing":
            example = _example(_type_at(model, path))
            message = f"the key `{path[-1]}` is missing here: write `{path[-1]}: {example}`"
            return document.problem(path[:-1], message)
        case "extra_forbidden":
            return document.problem(path, _unknown_key(model, path), at_key=True)
        case "value_error":
            return document.problem(path, str(detail["ctx"]["error"]), at_key=is_key)
    message = f"{_name(path)} {_wanted(model, path, detail)}"
    return document.problem(path, message, at_key=is_key)


def _name(path: Path) -> str:
    if not path:
        return "the file"
    if isinstance(path[-1], int):
        return f"entry {path[-1] + 1} of `{path[-2]}`"
    return f"`{path[-1]}`"


def _wanted(model: type[BaseModel], path: Path, detail: ErrorDetails) -> str:
    """What the value must be, and what to write."""
    limits = detail.get("ctx", {})
    match detail["type"]:
        case "string_type":
            return "must be text: write it, in quotes if it looks like a number or true / false"
        case "int_type" | "int_from_float":
            return "must be a whole number, without quotes"
        case "float_type":
            return "must be a number, without quotes"
        case "finite_number":
            return "must be a number of ordinary size"
        case "bool_type":
            return "must be true or false, without quotes"
        case "list_type":
            return "must be a list: lines that begin with `- `, or [a, b]"
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"must be a map of keys, like {_example(_type_at(model, path))}"
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must have at most {limits['max_length']} characters"
        case "too_short":
            return f"must have {limits['min_length']} or more entries"
        case "too_long":
            return f"must have at most {limits['max_length']} entries"
        case "literal_error":
            return f"must be one of {limits['expected']}{_near_value(detail)}"
        case "greater_than_equal":
            return f"must be {_shown(limits['ge'])} or more"
        case "greater_than":
            return f"must be more than {_shown(limits['gt'])}"
        case "less_than_equal":
            return f"must be {_shown(limits['le'])} or less"
        case "string_pattern_mismatch":
            return "must be lower-case letters, digits and hyphens, like `my-lesson`"
    return detail["msg"].lower()


def _shown(limit: float) -> str:
    """A limit as an author would write it."""
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _near_value(detail: ErrorDetails) -> str:
    expected: str = detail["ctx"]["expected"]
    choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
    near = difflib.get_close_matches(str(detail["input"]), choices, n=1)
    return f": did you mean `{near[0]}`?" if near else ""


def _unknown_key(model: type[BaseModel], path: Path) -> str:
    holder = _type_at(model, path[:-1])
    known = list(holder.model_fields) if _is_model(holder) else []
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"keys here are {', '.join(known)}"
    return f"unknown key `{path[-1]}`: {hint}"


def _type_at(model: type[BaseModel], path: Path) -> object:
    """The type that the model wants at a path, without Annotated and `| None`."""
    here: object = model
    for part in path:
        if _is_model(here):
            field = here.model_fields.get(str(part))
            here = _unwrap(field.annotation) if field else None
        else:
            arguments = get_args(here)
            here = _unwrap(arguments[-1]) if arguments else None
    return here


def _is_model(here: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(here, type) and issubclass(here, BaseModel)


def _unwrap(annotation: object) -> object:
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            annotation = next(a for a in get_args(annotation) if a is not type(None))
        else:
            return annotation


def _example(wanted: object) -> str:
    """What a value of a type looks like in YAML."""
    if _is_model(wanted):
        if issubclass(wanted, Entry) and wanted.example:
            return wanted.example
        fields = wanted.model_fields
        needed = [name for name, field in fields.items() if field.is_required()] or list(fields)
        return "{" + ", ".join(f"{name}: ..." for name in needed) + "}"
    if wanted is int:
        return "10"
    if wanted is float:
        return "0.5"
    return "[...]" if get_origin(wanted) is list else "..."
