"""The API about itself: its OpenAPI document, and the same as a page."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.web.exchange import answer_with_tag, public_address
from vskill_platform.web.kept import kept_of
from vskill_platform.web.openapi import TAGS, Document, document
from vskill_platform.web.render import render
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
    schemas: dict[str, Document] = found["components"]["schemas"]
    return render(
        request,
        "api_reference.html",
        groups=_groups(found),
        abouts=TAGS,
        schemas=[(name, schemas[name], _members(schemas[name])) for name in sorted(schemas)],
        info=found["info"],
        address=public_address(request),
        type_name=_type_name,
    )


def _groups(found: Document) -> dict[str, list[tuple[str, str, Document]]]:
    """Operations by tag, in the order of the tags; those that only read come first."""
    groups: dict[str, list[tuple[str, str, Document]]] = {tag: [] for tag in TAGS}
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            groups[operation["tags"][0]].append((method.upper(), path, operation))
    ordered = {tag: sorted(some, key=lambda one: one[0] != "GET") for tag, some in groups.items()}
    return {tag: some for tag, some in ordered.items() if some}


def _members(schema: Document) -> Iterable[tuple[str, Document]]:
    values = [(str(value), {"type": "value"}) for value in schema.get("enum", ())]
    return values or schema.get("properties", {}).items()


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
