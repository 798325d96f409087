"""What the API's documents are made of: its problems, its schema, and the page's context."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, Field

Json = dict[str, object]


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    MEDIA_TYPE: ClassVar = "application/problem+json"

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no such run."])


def describe(schema: Json) -> Json:
    """The generated schema with our own problems in place of the framework's."""
    schemas = json_object(json_object(schema["components"])["schemas"])
    schemas["Problem"] = Problem.model_json_schema()
    for methods in json_object(schema["paths"]).values():
        for operation in json_object(methods).values():
            responses = json_object(json_object(operation)["responses"])
            generated = json_object(responses.get("422", {})).get("content", {})
            if "application/json" in json_object(generated):
                del responses["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return schema


def json_object(value: object) -> Json:
    """A part of a schema that is an object."""
    assert isinstance(value, dict)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiField:
    """A parameter or a property of a body."""

    name: str
    place: str
    """path, header or body."""
    is_required: bool
    type: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """One status that an operation answers with."""

    status_code: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """One method on one path."""

    method: str
    path: str
    summary: str
    description: str
    fields: tuple[ApiField, ...]
    answers: tuple[ApiAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDocsPage:
    """Context of api_docs.html."""

    title: str
    description: str
    schema_url: str
    operations: tuple[ApiOperation, ...]
