"""SCIM 2.0 (RFC 7644) for the directories of companies, at `/scim/v2/{issuer}`, as Okta and Entra use it: users and
groups are made, read, filtered by one attribute, listed in pages, replaced, patched and deleted.

Each directory has a token of its own, which is no account's: `actions.people.directories` decides what it may do.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import iso_time
from vskill_core.errors import NotFound
from vskill_platform.actions.people import directories
from vskill_platform.actions.people.access import SCIM
from vskill_platform.domain.people import scim
from vskill_platform.setting_issuers import Issuer
from vskill_platform.web.exchange import public_address, services_of
from vskill_platform.web.problems import SCIM_TYPE
from vskill_platform.web.routing import Endpoint, View, body_of, query_of

MOST_BODY = 1_000_000
#: Resources on a page.
MOST_LISTED = 200
USERS, GROUPS = "Users", "Groups"
#: What each can be found by.
FILTERS = {USERS: ("userName", "externalId", "id"), GROUPS: ("displayName", "externalId", "id")}
_CORE = "urn:ietf:params:scim:schemas:core:2.0"
#: What a directory may only read, by the last part of its address: what there is of SCIM, and which attributes.
_ABOUT: dict[str, Any] = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes())


class ScimQuery(msgspec.Struct, frozen=True, rename="camel"):
    """What a directory asks for; what it sends beside it is ignored."""

    filter: str = ""
    start_index: int = 1
    count: int = 100
    attributes: str = ""
    excluded_attributes: str = ""


async def show_all(request: Request) -> Response:
    issuer, kind, asked = await _admit(request), request.path_params["resource"], query_of(request, ScimQuery)
    if kind in _ABOUT and isinstance(_ABOUT[kind], dict):
        return _answer(_ABOUT[kind])
    start, most = max(asked.start_index, 1), min(max(asked.count, 0), MOST_LISTED)
    if kind in FILTERS:
        wanted = scim.parse_filter(asked.filter, FILTERS[kind]) if asked.filter else None
        find = directories.list_users if kind == USERS else directories.list_groups
        total, found = await find(issuer, wanted, start - 1, most)
        page = [await _complete(request, issuer, kind, one) for one in found]
    else:
        page = _about(kind)
        total = len(page)
    body = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": len(page),
        "Resources": page,
    }
    return _answer(body)


async def show(request: Request) -> Response:
    issuer, kind, identifier = (
        await _admit(request),
        request.path_params["resource"],
        request.path_params["id"],
    )
    if kind in FILTERS:
        return await _answer_one(request, issuer, kind, identifier)
    for one in _about(kind):
        if one["id"] == identifier:
            return _answer(one)
    raise NotFound(f"There is no {identifier[:80]!r}.")


async def create(request: Request) -> Response:
    issuer, kind = await _admit(request), request.path_params["resource"]
    if kind not in FILTERS:
        # Searching by POST is optional.
        raise HTTPException(501 if kind == ".search" else 405)
    services, sent = services_of(request), scim.read_document(await body_of(request, Any, MOST_BODY))
    if kind == USERS:
        made = await directories.make_user(
            services, issuer, scim.convert({"active": True} | sent, scim.ScimUser)
        )
    else:
        made = await directories.make_group(services, issuer, scim.convert(sent, scim.ScimGroup))
    return await _answer_one(request, issuer, kind, made, 201)


async def replace(request: Request) -> Response:
    """What is left out ends, but for who it is and whether the account may be used."""
    admitted = await _admit_change(request)
    sent = scim.read_document(await body_of(request, Any, MOST_BODY))
    kept = ("active", "externalId")
    return await _change(
        request, admitted, lambda known: {name: known[name] for name in kept if name in known} | sent
    )


async def patch(request: Request) -> Response:
    admitted = await _admit_change(request)
    sent = await body_of(request, scim.Patch, MOST_BODY)
    return await _change(request, admitted, lambda known: scim.apply_patch(known, sent))


async def delete(request: Request) -> Response:
    issuer, kind, identifier = await _admit_change(request)
    end = directories.delete_user if kind == USERS else directories.delete_group
    await end(services_of(request), issuer, identifier)
    return Response(None, 204)


async def _change(request: Request, admitted: tuple[Issuer, str, str], alter: directories.Alter) -> Response:
    issuer, kind, identifier = admitted
    change = directories.alter_user if kind == USERS else directories.alter_group
    await change(services_of(request), issuer, identifier, alter)
    return await _answer_one(request, issuer, kind, identifier)


async def _admit(request: Request) -> Issuer:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    given = secret.strip() if scheme.lower() == "bearer" else ""
    return await directories.admit_directory(services_of(request), request.path_params["issuer"], given)


async def _admit_change(request: Request) -> tuple[Issuer, str, str]:
    issuer, kind = await _admit(request), request.path_params["resource"]
    if kind not in FILTERS:
        raise HTTPException(405 if kind in _ABOUT else 404)
    return issuer, kind, request.path_params["id"]


def _about(kind: str) -> list[dict[str, Any]]:
    if not isinstance(_ABOUT.get(kind), list):
        raise HTTPException(404)
    found: list[dict[str, Any]] = _ABOUT[kind]
    return found


# Answers.


async def _answer_one(
    request: Request, issuer: Issuer, kind: str, identifier: str, status: int = 200
) -> Response:
    read = directories.read_user_sent if kind == USERS else directories.read_group_sent
    found = await read(issuer, identifier)
    return _answer(await _complete(request, issuer, kind, found), status)


async def _complete(request: Request, issuer: Issuer, kind: str, found: dict[str, Any]) -> dict[str, Any]:
    """The resource with its members and where it is, without what the request leaves out."""
    base = f"{public_address(request)}{SCIM}/{issuer.name}"
    created, name = iso_time(found.pop("created")), kind.removesuffix("s")
    if kind == GROUPS and _is_wanted(request, "members"):
        names = await directories.list_members(issuer, found["id"])
        found["members"] = [{"value": one, "$ref": f"{base}/{USERS}/{one}"} for one in names]
    shown = {part: value for part, value in found.items() if part == "id" or _is_wanted(request, part)}
    meta = {"resourceType": name, "created": created, "location": f"{base}/{kind}/{found['id']}"}
    return {"schemas": [f"{_CORE}:{name}"], **shown, "meta": meta}


def _is_wanted(request: Request, name: str) -> bool:
    """Whether the request asks for an attribute; a part of one asks for the whole."""
    asked = request.scope["query"] if request.method in ("GET", "HEAD") else ScimQuery()
    names, without = (_names(text) for text in (asked.attributes, asked.excluded_attributes))
    return name.lower() in names if names else name.lower() not in without


def _names(text: str) -> set[str]:
    return {
        one.strip().rpartition(":")[2].partition(".")[0].lower() for one in text.split(",") if one.strip()
    }


def _answer(body: dict[str, Any], status: int = 200) -> Response:
    headers = {"cache-control": "no-store"} | (
        {"location": body["meta"]["location"]} if status == 201 else {}
    )
    return Response(msgspec.json.encode(body), status, headers, SCIM_TYPE)


_COMMON: Mapping[str, Any] = {
    "media": SCIM_TYPE,
    "most_body": MOST_BODY,
    "signs_in": True,
    "stays_open": True,
    "documented": False,
}


def _route(method: str, view: View, path: str = "/{resource}/{id}", **declared: Any) -> Endpoint:
    return Endpoint(method=method, path=f"{SCIM}/{{issuer}}{path}", view=view, **_COMMON, **declared)


_CHANGES: Mapping[str, Any] = {"no_scope": "a directory has a token of its own"}
ENDPOINTS = (
    _route("GET", show_all, "/{resource}", query=ScimQuery),
    _route("GET", show, query=ScimQuery),
    _route("POST", create, "/{resource}", **_CHANGES),
    _route("PUT", replace, **_CHANGES),
    _route("PATCH", patch, **_CHANGES),
    _route("DELETE", delete, **_CHANGES),
)
