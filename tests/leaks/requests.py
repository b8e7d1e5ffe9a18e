"""Every request that the routes can be asked with, made from the route table itself: a part of a path, a parameter or a
field of a body that no table here knows is an error, so that a new route cannot come without a case."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.leaks.world import COLLECTION, RULE, Facts
from vskill_platform.web.routing import Endpoint

_PART = re.compile(r"{(\w+)(:\w+)?}")

#: Parts of paths, by name.
PARTS = {
    "owner": "owner",
    "repo": "repo",
    "slug": "slug",
    "name": "slug",
    "digest": "digest",
    "submission_id": "submission",
    "report_id": "report",
    "part": "part",
}
#: Parts that name nothing that anybody published.
PLAIN_PARTS = {
    "version": "1.0.0",
    "number": "1.0.0",
    "path": "SKILL.md",
    "collection": "no-such",
    "upstream": "no-such",
    "file": "index.json",
    "provider": "bandit",
    "rule": RULE,
    "ticket": "3-ab",
    # A hand-in's id cannot be guessed or computed; `tests/web/test_hand_ins.py` asks with one that exists.
    "hand_in_id": "01handin00000000000000000x",
    "token_id": "01token",
    "identity": "0123456789abcdef",
    "webhook_id": "01webhook",
    "letter_id": "1",
    "job": "recover",
    "publisher_id": "01publisher",
    "hook_id": "01hook",
    "credential_id": "01credential",
    "ruleset": "rules-2",
    "account": "zoe",
    "member": "user:zoe",
    "principal": "user:zoe",
    "team": "core",
    "issuer": "acme",
    "resource": "Users",
    "id": "zoe",
}

#: Parameters that can carry a name, and which; `from` a list, its one element.
NAMED = {
    "q": "slug",
    "owner": "owner",
    "ownerHandle": "owner",
    "namespace": "owner",
    "open": "owner",
    "ids": "submission",
    "name": "slug",
    "slug": "slug",
    "skill": "canonical",
    "a": "canonical",
    "b": "canonical",
    "skills": "canonical",
    "skillName": "slug",
    "skillPath": "path",
    "prefix": "slug",
    "repoUrl": "repo_url",
    "repo": "repo_url",
    "digest": "digest",
    "hash": "content_hash",
    "contentHash": "content_hash",
    "target": "repo_url",
    "place": "repo_url",
    "submissionId": "submission",
    "submission": "submission",
    "submissions": "submission",
    "about": "slug",
}
#: Parameters that narrow, order or page, and name nothing; with what they are given where they must be given.
PLAIN: dict[str, Any] = {
    "limit": 5,
    "key": None,
    "partial": None,
    "state": None,
    "category": None,
    "sort": None,
    "direction": None,
    "mine": None,
    "after": None,
    "before": None,
    "source": None,
    "run": None,
    "account": None,
    "certification": None,
    "trust": None,
    "agent": None,
    "licence": None,
    "without": "network",
    "provenance": "verified",
    "minInstalls": "1",
    "minAge": "18",
    "ruleset": "6-rules",
    "version": "1.0.0",
    "status": None,
    "path": "SKILL.md",
    "format": None,
    "from": "1.0.0",
    "to": "1.1.0",
    "page": None,
    "part": None,
    "line": None,
    "mode": "internal",
    "highlightedOnly": None,
    "nonSuspiciousOnly": None,
    "cursor": None,
    "dir": None,
    "forceInstall": None,
    "tag": None,
    "service": "git-upload-pack",
    "collection": None,
    "reported": None,
    "next": None,
    "token": None,
    "code": None,
    "idToken": "not.a.token",
    "issuer": "github",
    "workflow": "publish.yml",
    "ref": None,
    "branch": "main",
    "folders": "skills/*",
    "environment": None,
    "number": None,
    "error": None,
    "error_description": None,
    "error_uri": None,
    "iss": None,
    "claim": None,
    "file": None,
    "kind": "place",
    "why": None,
    "hours": None,
    "verb": None,
    "submitters": "members",
    "ownReview": "forbidden",
    "who": None,
    "what": None,
    "outcome": None,
    "until": None,
    "filter": None,
    "startIndex": None,
    "count": None,
    "attributes": None,
    "excludedAttributes": None,
    "reason": "a test",
}
#: Filters, with each of which a list is asked for.
FILTERS = frozenset({"without", "provenance", "minInstalls", "minAge"})
#: Fields of bodies that name nothing.
PLAIN_FIELDS: dict[str, Any] = {
    "entry": "skills/lint",
    "reason": "a test",
    "text": "extends: open",
    "replaces": "",
    "run": 1,
    "account": "zoe",
    "version": "1.0.0",
    "every": False,
    "dryRun": True,
    "source": "api",
    "severity": "high",
    "address": "",
    "code": "none",
    "device_code": "none",
    "grant_type": "none",
    "own": "daily",
    "watched": "daily",
    "reviews": "daily",
    "reports": "daily",
    "alerts": "daily",
    "threatType": "malware",
    "role": "author",
    "password": "seven green boats at noon",
    "hostKey": f"SHA256:{'a' * 43}",
    "current": "seven green boats at noon",
    "scopes": ["read"],
    "days": 1,
    "url": "https://hooks.example.org/x",
    "events": ["skill.published"],
    "secret": "s" * 32,
    "title": "A title",
    "description": "A description",
    "minutes": 1,
    "githubToken": "gho_x",
    "accounts": ["zoe"],
    "size": 3,
    "sha256": "0" * 64,
    "durationMs": 1_000,
    "id": "01id",
    "old": "seven green boats at noon",
    "new": "eight green boats at noon",
    "member": "zoe",
    "mode": "internal",
    "submitters": "members",
    "ownReview": "forbidden",
    "filter": None,
    "startIndex": None,
    "count": None,
    "attributes": None,
    "excludedAttributes": None,
    "to": "team",
}
#: Fields of bodies that may be left out: bodies are sent without them, and with them.
OPTIONAL_FIELDS: dict[str, Any] = {"kind": "plugin"}


class Asked(msgspec.Struct, frozen=True):
    """One request."""

    method: str
    path: str
    query: dict[str, str] = {}
    json: Any = None
    form: dict[str, str] | None = None

    @property
    def label(self) -> str:
        return f"{self.method} {self.path} {self.query or ''}{self.json or ''}{self.form or ''}"


def path_text(facts: Facts) -> str:
    return f"skills/{facts.slug}"


def value_of(facts: Facts, name: str) -> str:
    return path_text(facts) if name == "path" else str(getattr(facts, name))


def requests_for(endpoint: Endpoint, facts: Facts) -> Iterator[Asked]:
    """What this route is asked about these facts: without parameters, with each that can carry a name, with all."""
    for path in paths_for(endpoint, facts):
        if endpoint.method == "GET":
            for query in queries_for(endpoint, facts):
                yield Asked("GET", path, query)
        elif endpoint.is_form:
            yield Asked(endpoint.method, path, form=form_for(endpoint, facts))
        else:
            bodies = [None] if endpoint.body is None else bodies_for(endpoint.body, facts)
            query = next(iter(queries_for(endpoint, facts)))
            yield from (Asked(endpoint.method, path, query, json=body) for body in bodies)


def paths_for(endpoint: Endpoint, facts: Facts) -> Iterator[str]:
    """The address with its parts filled in; a short name also in its longer forms where a route takes those."""

    def fill(part: re.Match[str]) -> str:
        name = part[1]
        if name == "name" and "/namespaces/" in endpoint.path:
            return facts.owner
        if name in PARTS:
            return value_of(facts, PARTS[name])
        assert name in PLAIN_PARTS, (
            f"{endpoint.path}: no table of tests/leaks/requests.py knows the part {name!r}"
        )
        return PLAIN_PARTS[name]

    path = _PART.sub(fill, endpoint.path)
    yield path
    part_of_it = "collection" if "{collection}" in endpoint.path else "name"
    if "/collections/" in endpoint.path and f"{{{part_of_it}}}" in endpoint.path:
        yield _PART.sub(lambda part: COLLECTION if part[1] == part_of_it else fill(part), endpoint.path)


def queries_for(endpoint: Endpoint, facts: Facts) -> Iterator[dict[str, str]]:
    struct = endpoint.query
    names = struct.__struct_encode_fields__
    unknown = [name for name in names if name not in NAMED and name not in PLAIN]
    assert not unknown, f"{endpoint.path}: no table of tests/leaks/requests.py knows the parameters {unknown}"
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    required = {one.encode_name for one in info.fields if one.required}
    base = {name: _value(facts, name) for name in names if name in required}
    yield base
    carrying = [name for name in names if name in NAMED]
    for name in carrying:
        yield {**base, name: value_of(facts, NAMED[name])}
    if "collection" in names:
        yield {**base, "collection": COLLECTION}
    for name in FILTERS.intersection(names):
        yield {**base, name: str(PLAIN[name])}
    if len(carrying) > 1:
        yield {**base, **{name: value_of(facts, NAMED[name]) for name in carrying}}


def _value(facts: Facts, name: str) -> str:
    if name in NAMED:
        return value_of(facts, NAMED[name])
    assert PLAIN[name] is not None, f"a route needs the parameter {name!r}: give it a value in PLAIN"
    return str(PLAIN[name])


def form_for(endpoint: Endpoint, facts: Facts) -> dict[str, str]:
    """Every field that any form has: a form takes what it knows."""
    named = {name: value_of(facts, kind) for name, kind in NAMED.items()}
    snake = {_snake(name): value for name, value in named.items()}
    plain = {name: str(value) for name, value in PLAIN_FIELDS.items() if isinstance(value, str | int)}
    return {**plain, **snake, "skill": facts.canonical, "repo_url": facts.repo_url, "kind": "place"}


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def bodies_for(kind: Any, facts: Facts) -> list[Any]:
    """Bodies of this type, with the facts wherever a field can hold one."""
    info, where = msgspec.inspect.type_info(kind), str(getattr(kind, "__name__", kind))
    plain, whole = (_fill(info, facts, "", where, more) for more in ({}, OPTIONAL_FIELDS))
    return [plain] if plain == whole else [plain, whole]


def _fill(info: msgspec.inspect.Type, facts: Facts, name: str, where: str, more: Mapping[str, Any]) -> Any:
    if isinstance(info, msgspec.inspect.StructType):
        given = {}
        for field in info.fields:
            if field.required or field.encode_name in NAMED:
                given[field.encode_name] = _fill(field.type, facts, field.encode_name, where, more)
            elif field.encode_name in more:
                given[field.encode_name] = more[field.encode_name]
        return given
    if isinstance(info, msgspec.inspect.UnionType):
        return _fill(info.types[0], facts, name, where, more)
    if isinstance(info, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
        if name in PLAIN_FIELDS:
            return PLAIN_FIELDS[name]
        return [_fill(info.item_type, facts, name, where, more)]
    if name in NAMED:
        return value_of(facts, NAMED[name])
    assert name in PLAIN_FIELDS or name in PLAIN, (
        f"{where}: no table of tests/leaks/requests.py knows the field {name!r}"
    )
    return PLAIN_FIELDS.get(name, PLAIN.get(name))
