"""Everything that a registry hands out about its skills, asked as clients ask: names, lists, versions, archives, blocks.

Two collections of it are equal where nothing that was handed out has changed.
"""

import hashlib
from typing import Any
from urllib.parse import quote

import httpx2


async def collect(client: httpx2.AsyncClient, expected: dict[str, Any]) -> dict[str, Any]:
    """The answers to what `expected` holds answers to."""
    return {
        "marketplaces": {path: await _marketplace(client, path) for path in expected["marketplaces"]},
        "indexes": {scope: await _index(client, scope) for scope in expected["indexes"]},
        "clawhub": await _clawhub(client),
        "names": {name: await _resolve(client, name) for name in expected["names"]},
        "skills": {name: await _skill(client, name) for name in expected["skills"]},
        "checks": {query: await _check(client, query) for query in expected["checks"]},
        "blocklist": await _blocklist(client),
    }


async def _marketplace(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    document = (await client.get(path)).json()
    return {one["name"]: [one["source"]["url"], one["version"]] for one in document["plugins"]}


async def _index(client: httpx2.AsyncClient, scope: str) -> dict[str, Any]:
    document = (await client.get(f"{scope.rstrip('/')}/.well-known/agent-skills/index.json")).json()
    return {
        one["name"]: [one["type"], one["url"], one["digest"], await _sha256(client, one["url"])]
        for one in document["skills"]
    }


async def _clawhub(client: httpx2.AsyncClient) -> dict[str, Any]:
    document = (await client.get("/clawhub/api/v1/skills?limit=100")).json()
    return {one["slug"]: one["latestVersion"]["version"] for one in document["items"]}


async def _resolve(client: httpx2.AsyncClient, name: str) -> list[Any]:
    """The skill that a name leads to, or the error that is said instead."""
    answer = await client.get(f"/api/v1/skills/{_quoted(name)}")
    body = answer.json()
    return [answer.status_code, body["skill"]["name"] if answer.status_code == 200 else body["code"]]


async def _skill(client: httpx2.AsyncClient, name: str) -> dict[str, Any]:
    path = f"/api/v1/skills/{_quoted(name)}"
    detail = (await client.get(path)).json()["skill"]
    versions = (await client.get(f"{path}/versions")).json()["versions"]
    place = _quoted(name)
    return {
        "current": detail["currentVersion"],
        "repository": await _head(client, place),
        "versions": {
            one["version"]: {
                "status": one["status"],
                "digest": one["digest"],
                "contentHash": one["contentHash"],
                "zip": await _sha256(client, f"{path}/archive?version={one['version']}"),
                "tar.gz": await _sha256(client, f"{path}/archive?version={one['version']}&format=tar.gz"),
                "attestation": await _sha256(
                    client, f"/api/v1/skills/{place}/versions/{one['version']}/attestation"
                ),
            }
            for one in versions
        },
    }


async def _head(client: httpx2.AsyncClient, place: str) -> int | str:
    """The commit that a clone of the skill's repository gets."""
    path = f"/marketplace/{place}.git/info/refs?service=git-upload-pack"
    answer = await client.get(path)
    if answer.status_code != 200:
        return answer.status_code
    return next(line[4:44] for line in answer.text.splitlines() if " refs/heads/" in line)


async def _sha256(client: httpx2.AsyncClient, path: str) -> int | str:
    """Of the bytes that are served; the status where none are."""
    answer = await client.get(path)
    return hashlib.sha256(answer.content).hexdigest() if answer.status_code == 200 else answer.status_code


async def _check(client: httpx2.AsyncClient, query: str) -> list[Any]:
    answer = (await client.get(f"/api/v1/blocklist/check?{query}")).json()
    return [answer["blocked"], answer["rejected"], answer["tainted"]]


async def _blocklist(client: httpx2.AsyncClient) -> list[Any]:
    answer = (await client.get("/api/v1/blocklist")).json()
    return sorted([one["targetKind"], one["target"], one["severity"]] for one in answer["entries"])


def _quoted(name: str) -> str:
    """A canonical name is three segments of an address; any other name is one."""
    return quote(name, safe="/" if name.count("/") == 2 else "")
