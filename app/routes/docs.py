"""A page that lists the JSON API, made from its own schema; it loads nothing from elsewhere."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.i18n import negotiate
from app.routes.api_schema import (
    ApiAnswer,
    ApiDocsPage,
    ApiField,
    ApiOperation,
    Json,
    json_object,
)
from app.routes.site import SiteOf
from app.routes.views import respond

router = APIRouter(include_in_schema=False)


@router.api_route("/api/docs", methods=["GET", "HEAD"])
async def api_docs(request: Request, site: SiteOf) -> Response:
    """The JSON API as a page."""
    schema: Json = request.app.openapi()
    info = json_object(schema["info"])
    page = ApiDocsPage(
        title=str(info["title"]),
        description=str(info["description"]),
        schema_url=str(request.app.openapi_url),
        operations=tuple(_operations(schema)),
    )
    language = negotiate(request.headers.get("accept-language"))
    return await respond(site, request, language, "api_docs.html", page)


def _operations(schema: Json) -> list[ApiOperation]:
    return [
        ApiOperation(
            method=method.upper(),
            path=path,
            summary=str(operation.get("summary", "")),
            description=str(operation.get("description", "")),
            fields=(*_parameters(operation), *_body(operation, schema)),
            answers=tuple(
                ApiAnswer(status_code=code, description=str(json_object(said)["description"]))
                for code, said in sorted(json_object(operation["responses"]).items())
            ),
        )
        for path, methods in json_object(schema["paths"]).items()
        for method, operation in ((m, json_object(o)) for m, o in json_object(methods).items())
    ]


def _parameters(operation: Json) -> list[ApiField]:
    found = operation.get("parameters", [])
    assert isinstance(found, list)
    return [
        ApiField(
            name=str(parameter["name"]),
            place=str(parameter["in"]),
            is_required=bool(parameter.get("required")),
            type=_type(json_object(parameter["schema"])),
            description=str(parameter.get("description", "")),
        )
        for parameter in found
    ]


def _body(operation: Json, schema: Json) -> list[ApiField]:
    if "requestBody" not in operation:
        return []
    content = json_object(json_object(operation["requestBody"])["content"])
    reference = str(json_object(json_object(content["application/json"])["schema"])["$ref"])
    model = json_object(
        json_object(json_object(schema["components"])["schemas"])[reference.split("/")[-1]]
    )
    required = model.get("required", [])
    assert isinstance(required, list)
    return [
        ApiField(
            name=name,
            place="body",
            is_required=name in required,
            type=_type(json_object(field)),
            description=str(json_object(field).get("description", "")),
        )
        for name, field in json_object(model["properties"]).items()
    ]


def _type(schema: Json) -> str:
    if "enum" in schema:
        values = schema["enum"]
        assert isinstance(values, list)
        return " | ".join(map(str, values))
    return str(schema.get("type", "string"))
