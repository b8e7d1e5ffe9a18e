"""A registry with a private namespace: a skill that its team reads, and everybody else who may ask about it."""

import asyncio
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.clients.registry import Registry, running, skill_md
from vskill_platform.bootstrap import env_for
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.settings import Settings
from vskill_platform.store.people.credentials import PREFIX, find_token, hash_secret
from vskill_platform.worker_context import require_env, run_with_worker_env

OWNER = "upload~mia"
SLUG = "quartz"
HIDDEN = f"{OWNER}/skills/{SLUG}"
#: What is not there: beside the hidden skill, and in a namespace that nobody has.
ABSENT = (f"{OWNER}/skills/zircon", f"upload~ida/skills/{SLUG}")
FILES = {
    "SKILL.md": skill_md(SLUG, "Ünïcode prose."),
    "scripts/run.sh": b"#!/bin/sh\necho done\n",
    "assets/logo.png": bytes(range(256)),
}
#: Why an operator does what the tests need.
WHY = ("--reason", "for a test of clients")
#: Who may not read it, by what they send.
OUTSIDERS = ("no token", "another team", "a namespace of its own", "expired", "revoked", "foreign")

_NAMES = re.compile("|".join(re.escape(name) for name in (OWNER, "upload~ida", SLUG, "zircon")))
#: The id of a request is in its answer, and in no other.
_REQUEST_ID = re.compile(r'("requestId":")[^"]+')


class PrivateRegistry(msgspec.Struct, frozen=True):
    """The server, and what each of `OUTSIDERS` sends."""

    registry: Registry
    #: Of an account in the team that reads the namespace.
    member: str
    outsiders: dict[str, str | None]

    @property
    def url(self) -> str:
        return self.registry.url

    @property
    def repository(self) -> str:
        return repository_of(self.registry, HIDDEN)

    def headers(self, who: str) -> dict[str, str]:
        """What a program of one of the outsiders sends along."""
        token = self.outsiders[who]
        return {} if token is None else bearer(token)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def repository_of(registry: Registry, canonical: str) -> str:
    return f"{registry.url}/marketplace/{canonical}.git"


def without_names(text: str) -> str:
    """What a client said, without what it was asked about."""
    return _REQUEST_ID.sub(r"\1(id)", _NAMES.sub("(name)", text))


@contextmanager
def running_private(folder: Path, **variables: str) -> Iterator[PrivateRegistry]:
    """A server where mia's namespace is read by a team that bob is in, and zoe's by zoe alone."""
    with running(folder, **variables) as registry:
        registry.token("mia")
        member, another = registry.token("bob"), registry.token("zoe")
        registry.publish("open", {"SKILL.md": skill_md("open")})
        registry.publish(SLUG, FILES, namespace="mia")
        registry.publish("hers", {"SKILL.md": skill_md("hers")}, namespace="zoe")
        registry.command("team", "create", "platform", *WHY)
        registry.command("team", "add", "platform", "bob", *WHY)
        registry.command("namespace", "add", OWNER, "team:platform", "reader", *WHY)
        registry.command("namespace", "visibility", OWNER, "team", "--yes", *WHY)
        registry.command("namespace", "visibility", "upload~zoe", "team", "--yes", *WHY)
        outsiders = {
            "no token": None,
            "another team": another,
            "a namespace of its own": create_token(registry, "--namespace", "upload~bob")[0],
            "expired": _expire(registry, create_token(registry)[0]),
            "revoked": revoke_token(registry, *create_token(registry)),
            "foreign": PREFIX + secrets.token_urlsafe(32),
        }
        yield PrivateRegistry(registry, member, outsiders)


def create_token(registry: Registry, *options: str) -> tuple[str, str]:
    """Another token of the member, and its id."""
    made = json.loads(registry.command("token", "create", "bob", "--name", "other", "--json", *options))
    return made["token"], made["details"]["id"]


def revoke_token(registry: Registry, secret: str, token_id: str) -> str:
    registry.command("token", "revoke", "bob", token_id, *WHY)
    return secret


def _expire(registry: Registry, secret: str) -> str:
    """No command makes a token whose time is over, so its record is changed."""

    async def change() -> None:
        found = await find_token(secret)
        assert found is not None
        kv, key = require_env("kv").kv, keys.token(hash_secret(secret))
        entry = await kv.get(key)
        assert entry is not None
        over = msgspec.structs.replace(found[0], expires_at=found[0].created_at + 1)
        await kv.commit([Put(key, msgspec.json.encode(over), entry.version)])

    async def open_store() -> None:
        async with env_for(Settings(data_dir=str(registry.folder / "data"))) as env:
            await run_with_worker_env(env, change)

    asyncio.run(open_store())
    return secret
