"""The API about itself: its OpenAPI document, and the same as a page."""

import asyncio
from itertools import groupby
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.web.addresses import public_address
from vskill_platform.web.kept import kept_of
from vskill_platform.web.openapi import JSON, TAGS, Document, document
from vskill_platform.web.render import render
from vskill_platform.web.responses import answer_with_tag
from vskill_platform.web.routing import get, page

OPENAPI_TYPE = "application/json"


async def openapi_view(request: Request) -> Response:
    found = await describe_api(request)
    body = msgspec.json.encode({**found, "servers": [{"url": public_address(request)}]})
    return answer_with_tag(request, body, OPENAPI_TYPE)


async def describe_api(request: Request) -> Document:
    """The document of this application, made once; its descriptions are read from the source."""
    kept = kept_of(request)
    if kept.openapi is None:
        kept.openapi = await asyncio.to_thread(document, request.app.endpoints)
    return kept.openapi


async def reference_view(request: Request) -> Response:
    found = await describe_api(request)
    return render(
        request,
        "api_reference.html",
        groups=_groups(found),
        schemas=_shown_schemas(found),
        info=found["info"],
        address=public_address(request),
    )


def _groups(found: Document) -> list[dict[str, Any]]:
    """Operations by tag, in the order of the tags; those that only read come first."""
    operations = [
        _operation_view(path, method, one)
        for path, methods in found["paths"].items()
        for method, one in methods.items()
    ]
    order = list(TAGS)
    operations.sort(key=lambda one: (order.index(one["tag"]), one["method"] != "GET"))
    return [
        {"tag": tag, "about": TAGS[tag], "operations": list(some)}
        for tag, some in groupby(operations, key=lambda one: one["tag"])
    ]


def _operation_view(path: str, method: str, one: Document) -> dict[str, Any]:
    body = one.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
    return {
        "id": one["operationId"],
        "tag": one["tags"][0],
        "method": method.upper(),
        "path": path,
        "summary": one["summary"],
        "about": one.get("description", ""),
        "is_open": {} in one["security"],
        "parameters": [_parameter(each) for each in one["parameters"]],
        "body": _type_name(body) if body else "",
        "responses": [_response(status, each) for status, each in one["responses"].items()],
    }


def _parameter(one: Document) -> dict[str, Any]:
    return {
        "name": one["name"],
        "place": one["in"],
        "required": one["required"],
        "type": _type_name(one["schema"]),
        "about": one.get("description", ""),
    }


def _response(status: str, one: Document) -> dict[str, Any]:
    contents: dict[str, Document] = one.get("content", {})
    media = next(iter(contents), "")
    schema = contents[media].get("schema") if media else None
    return {
        "status": status,
        "text": one["description"],
        "media": media,
        "type": _type_name(schema) if schema else "",
    }


def _shown_schemas(found: Document) -> list[dict[str, Any]]:
    return [
        {"name": name, "about": schema.get("description", ""), "fields": _fields(schema)}
        for name, schema in sorted(found["components"]["schemas"].items())
    ]


def _fields(schema: Document) -> list[dict[str, Any]]:
    if "enum" in schema:
        return [{"name": str(one), "type": "value", "about": "", "required": False} for one in schema["enum"]]
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "type": _type_name(one),
            "about": one.get("description", ""),
            "required": name in required,
        }
        for name, one in schema.get("properties", {}).items()
    ]


def _type_name(schema: Document) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type_name(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"{_type_name(schema.get('items', {}))}[]"
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return f"map of {_type_name(schema['additionalProperties'])}"
    return str(schema.get("type", "anything")) + _bounds(schema)


def _bounds(schema: Document) -> str:
    least = schema.get("minimum", schema.get("minLength"))
    most = schema.get("maximum", schema.get("maxLength"))
    if least is None and most is None:
        return ""
    return f" ({'' if least is None else least} to {'any' if most is None else most})"


ENDPOINTS = (
    get(
        "/api/openapi.json",
        openapi_view,
        answer=dict[str, Any],
        tag="operations",
        summary="Read this document",
    ),
    page("/docs/api", reference_view),
)
