"""Stores with published skills, and an application over one of them that is asked without a network: what the
benchmarks of the web side share."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import ASGIApp

from bench.workshop import Workshop, open_env
from vskill_platform.archives import artifact_of
from vskill_platform.clock import SystemClock
from vskill_platform.domain import keys
from vskill_platform.domain.audience import PUBLIC
from vskill_platform.domain.content import SkillFile, content_hash, digest_of_files, manifest_of, pack
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.listing import about
from vskill_platform.domain.scan import Verdict
from vskill_platform.domain.skill import Publication, SkillVersion, publish_version
from vskill_platform.domain.trust import TrustFacts
from vskill_platform.env import Env
from vskill_platform.kv.entries import Put
from vskill_platform.web.app import create_app
from vskill_platform.web.kept import KeptThings
from vskill_platform.web.recent import Recent

#: Skills whose detail is asked for in turn.
ASKED = 200

CONTENT = (
    SkillFile(
        "SKILL.md",
        "100644",
        b"---\nname: tables\ndescription: Turns measurements into tables.\n---\n"
        + b"Read the file first, then write one row for each measurement, and say what is missing.\n" * 45,
    ),
)

_TOPICS = (
    "tables",
    "charts",
    "letters",
    "invoices",
    "tests",
    "diagrams",
    "queries",
    "notes",
    "forms",
    "maps",
)


def filled(workshop: Workshop, count: int) -> Path:
    return workshop.fill(f"{count:,} catalogue entries", skill_records(count, SystemClock().now()))


def skill_records(count: int, now: int) -> Iterator[Put]:
    """Published skills with one version each, all of one content. The version's own record is there for those whose
    detail is asked for: no list reads it."""
    asked = frozenset(_asked(count))
    for number in range(count):
        canonical = _canonical(number)
        skill, version = publish_version(None, _publication(number, canonical, now))
        skill = msgspec.structs.replace(skill, listed_as={PUBLIC: skill.slug})
        yield Put(keys.skill(canonical), msgspec.json.encode(skill))
        if number in asked and version is not None:
            yield Put(keys.version(canonical, version.number), msgspec.json.encode(version))


def _publication(number: int, canonical: str, now: int) -> Publication:
    owner, repo, name = canonical.split("/")
    place = Identity("github.com", owner, repo, f"skills/{name}")
    text = f"Turns {_TOPICS[number * 7 % len(_TOPICS)]} into a page that people can read, number {number}."
    version = SkillVersion(
        canonical=canonical,
        number="",
        name=name,
        description=text,
        digest=digest_of_files(CONTENT),
        content_hash=content_hash(CONTENT[0].data),
        tree_hash="2" * 64,
        manifest=manifest_of(CONTENT),
        score=100,
        published_at=now - number,
    )
    known = about(name=name, description=text)
    return Publication(
        version,
        place,
        "worker:bench",
        place.url,
        about=known,
        trust=TrustFacts(static=Verdict.PASS),
        artifact=artifact_of(CONTENT),
    )


def _canonical(number: int) -> str:
    return f"owner{number % 997}/tools{number % 13}/{_TOPICS[number % len(_TOPICS)]}-{number}"


def _asked(count: int) -> range:
    return range(0, count, max(1, count // ASKED))[:ASKED]


def names_of(count: int) -> list[str]:
    """Canonical names, spread over the store."""
    return [_canonical(number) for number in _asked(count)]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Env]:
    async with open_env(path) as env:
        await env.blobs.put(digest_of_files(CONTENT), pack(CONTENT))
        yield env


class Forgetful:
    """The application without what it keeps from one request to the next."""

    def __init__(self, env: Env) -> None:
        self._app: Any = create_app(env)
        self._kept = env.kept

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self._app.application.kept = KeptThings()
            self._kept.forget()
            self._app.application.state.recent = Recent(SystemClock())
        await self._app(scope, receive, send)


async def body_of(app: ASGIApp, path: str) -> bytes:
    """One answer, without a network."""
    plain, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": plain,
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"bench")],
        "client": ("127.0.0.1", 1),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert sent[0]["status"] == 200, (path, sent)
    return b"".join(message.get("body", b"") for message in sent)
