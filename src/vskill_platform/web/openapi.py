"""The OpenAPI 3.1 document, made of the table of endpoints and of the structs that they declare: nothing is written
twice, so nothing can disagree.

What a `#:` line says about a field in the source is its description here.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from vskill_client.wire.base import PLAIN
from vskill_platform import __version__
from vskill_platform.actions.principal import OPEN_RIGHTS
from vskill_platform.actions.wire import field_texts
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.web.problems import PROBLEM_TYPE, Problem
from vskill_platform.web.routing import PATH_PATTERNS, Endpoint

JSON = "application/json"
REFERENCE = "#/components/schemas/{name}"
TAGS = {
    "skills": "Find, read and download published skills.",
    "submissions": "Submit skills, follow submissions, cancel them.",
    "queue": "Check the health and speed of the queue, and operate it.",
    "blocklist": "Blocked skills, and why they are blocked.",
    "revocations": "Versions that were withdrawn, for those who have them.",
    "external scans": "Reports of other analysers.",
    "owners": "What owners do: claim repositories, hand them over, withdraw versions, delete skills.",
    "follows": "Followed repositories, whose skills are submitted as they come and change.",
    "upstreams": "Other marketplaces and repositories, whose skills come here to be verified.",
    "publishers": "CI workflows that publish a repository without a stored secret.",
    "namespaces": "Who belongs to a namespace or a team, who may read, and quotas.",
    "repositories": "Whether the repositories of published skills are still there.",
    "review": "Decisions of reviewers about waiting submissions.",
    "reports": "Reports about problematic skills.",
    "account": "Your account and tokens.",
    "accounts": "All accounts and tokens, for admins.",
    "webhooks": "Send decisions to other systems.",
    "collections": "Curated lists of skills for Claude Code.",
    "keys": "Public keys that verify attestations offline.",
    "operations": "Health checks and metrics for operators.",
}
_ABOUT = (
    "The API of a verified registry for agent skills. Errors are problem documents (RFC 9457). An unknown query "
    "parameter is refused. Lists are paged by cursor: pass `after` unchanged."
)
Document = dict[str, Any]
_SCHEMES: Document = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token, `vsk_…`; also taken as the password of HTTP Basic.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION_COOKIE,
        "description": "A signed-in browser.",
    },
}


def document(endpoints: Iterable[Endpoint]) -> Document:
    shown = [one for one in endpoints if one.documented]
    schemas, components = _schemas(shown)
    paths: dict[str, Document] = {}
    for endpoint in shown:
        paths.setdefault(template(endpoint), {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "vskill-platform", "version": __version__, "description": _ABOUT},
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _SCHEMES},
    }


def template(endpoint: Endpoint) -> str:
    return endpoint.path.replace(":path}", "}")


# Schemas.


class Schemas(msgspec.Struct, frozen=True):
    """The schema of each declared type, and every named one."""

    #: By the type's own text, since types may not be hashable.
    references: dict[str, Document]
    components: dict[str, Document]

    def of(self, kind: Any) -> Document:
        return self.references[repr(kind)]


def _schemas(endpoints: list[Endpoint]) -> tuple[Schemas, dict[str, Document]]:
    kinds: dict[str, Any] = {repr(Problem): Problem}
    for one in endpoints:
        for kind in (one.body, one.answer, one.query, *one.others.values()):
            if kind is not None:
                kinds[repr(kind)] = kind
    found, components = msgspec.json.schema_components(kinds.values(), ref_template=REFERENCE)
    texts = _descriptions(kinds.values())
    for name, schema in components.items():
        for field, text in texts.get(name, {}).items():
            if field in schema.get("properties", {}):
                schema["properties"][field]["description"] = text[:1].upper() + text[1:]
    schemas = Schemas(dict(zip(kinds, found, strict=True)), components)
    queries = {_name(schemas.of(one.query)) for one in endpoints}
    return schemas, {name: schema for name, schema in components.items() if name not in queries}


def _name(reference: Document) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _descriptions(kinds: Iterable[Any]) -> dict[str, dict[str, str]]:
    """Of every struct that occurs anywhere in these types, by name, what its fields mean."""
    found: dict[str, dict[str, str]] = {}
    waiting = [msgspec.inspect.type_info(kind) for kind in kinds]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls.__name__ not in found:
                found[info.cls.__name__] = field_texts(info.cls)
                waiting += [field.type for field in info.fields]
            continue
        for name in ("type", "item_type", "key_type", "value_type"):
            inner = getattr(info, name, None)
            if isinstance(inner, msgspec.inspect.Type):
                waiting.append(inner)
        waiting += [one for one in getattr(info, "types", ()) if isinstance(one, msgspec.inspect.Type)]
    return found


# Operations.


def _operation(endpoint: Endpoint, schemas: Schemas) -> Document:
    query = schemas.components[_name(schemas.of(endpoint.query))]
    known: list[Document] = [{"token": []}, {"session": []}]
    made: Document = {
        "operationId": operation_id(endpoint),
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "parameters": [
            *_path_parameters(endpoint),
            *(
                _query_parameter(name, dict(schema), required=name in query["required"])
                for name, schema in query["properties"].items()
            ),
        ],
        "responses": _responses(endpoint, schemas),
        "security": known if needs_account(endpoint) else [{}, *known],
    }
    if endpoint.about:
        made["description"] = endpoint.about
    if endpoint.body is not None:
        content = {JSON: {"schema": schemas.of(endpoint.body)}}
        # A body without required fields may be left out.
        is_required = any(field.required for field in msgspec.structs.fields(endpoint.body))
        made["requestBody"] = {"required": is_required, "content": content}
    elif endpoint.body_media:
        made["requestBody"] = {"required": True, "content": {endpoint.body_media: {}}}
    if endpoint.is_stream:
        made["x-stream"] = True
    return made


def operation_id(endpoint: Endpoint) -> str:
    """`GET /api/v1/skills/{name}/versions` → `getSkillsNameVersions`."""
    words = endpoint.path.removeprefix("/api/v1").replace(":path", "")
    plain = "".join(char if char.isalnum() else " " for char in words).split()
    return endpoint.method.lower() + "".join(word[:1].upper() + word[1:] for word in plain)


def _path_parameters(endpoint: Endpoint) -> list[Document]:
    names = [part.strip("{}").partition(":")[0] for part in endpoint.path.split("/") if part.startswith("{")]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "pattern": PATH_PATTERNS.get(name, PLAIN)},
        }
        for name in names
    ]


def _query_parameter(name: str, schema: Document, *, required: bool) -> Document:
    """Without null: a query says null by leaving the parameter out."""
    text = schema.pop("description", None)
    if schema.get("default", 0) is None:
        del schema["default"]
    choices = [one for one in schema.pop("anyOf", ()) if one.get("type") != "null"]
    if len(choices) == 1:
        schema |= choices[0]
    elif choices:
        schema["anyOf"] = choices
    if isinstance(schema.get("enum"), list):
        schema["enum"] = [one for one in schema["enum"] if one is not None]
    made: Document = {"name": name, "in": "query", "required": required, "schema": schema}
    return made if text is None else {**made, "description": text}


def _responses(endpoint: Endpoint, schemas: Schemas) -> Document:
    found = {str(endpoint.status): _success(endpoint, endpoint.status, endpoint.answer, schemas)}
    for status, kind in endpoint.others.items():
        found[str(status)] = _success(endpoint, status, kind, schemas)
    for status in sorted(problem_statuses(endpoint)):
        found.setdefault(str(status), _problem(status, schemas))
    return found


def _success(endpoint: Endpoint, status: int, kind: Any, schemas: Schemas) -> Document:
    made: Document = {"description": HTTPStatus(status).phrase}
    if kind is not None:
        made["content"] = {endpoint.media: {"schema": schemas.of(kind)}}
    elif endpoint.media:
        made["content"] = {endpoint.media: {}}
    return made


def needs_account(endpoint: Endpoint) -> bool:
    """Whether anonymous requests are refused."""
    return endpoint.action is not None and endpoint.action.right not in OPEN_RIGHTS


def problem_statuses(endpoint: Endpoint) -> set[int]:
    """The error statuses: declared ones, and those that follow from the declaration."""
    found = {400, 401, 503, *endpoint.problems}
    if needs_account(endpoint) or endpoint.token_scope is not None or endpoint.method != "GET":
        found.add(403)
    if endpoint.method != "GET":
        found.add(413)
    if endpoint.allowance is not None:
        found.add(429)
    return found


def _problem(status: int, schemas: Schemas) -> Document:
    made: Document = {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM_TYPE: {"schema": schemas.of(Problem)}},
    }
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        seconds = {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
        made["headers"] = {"Retry-After": seconds}
    return made
