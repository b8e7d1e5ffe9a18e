"""The first admin: made by a link that works once, for a limited time, and only while there is no admin.

The server prints the link's token at its start; the store has only its hash, at `control:setup`. Every commit that
makes an admin removes that record, so a link and a command that race make one admin, not two.
"""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable

import msgspec

from vskill_core.errors import NotFound
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.records import decode, persist
from vskill_platform.store.people.accounts import Role, User, create_user, find_admins
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.worker_context import Env, require_env, run_with_worker_env

LINK_MS = 24 * 3_600_000


class SetupLink(msgspec.Struct, frozen=True):
    """The record at `control:setup`."""

    token_hash: str
    expires_at: int


async def first_admin_link(env: Env, address: str) -> str | None:
    """The URL that makes the first admin; None if there is one. Invalidates earlier links."""
    token = await run_with_worker_env(env, new_setup_token)
    return None if token is None else f"{address.rstrip('/')}/setup?token={token}"


async def new_setup_token() -> str | None:
    if await find_admins():
        return None
    kv = require_env("kv").kv
    token = secrets.token_urlsafe(32)
    link = SetupLink(_hash(token), kv.now() + LINK_MS)
    await persist(lambda: kv.put(keys.CONTROL_SETUP, msgspec.json.encode(link), ttl_ms=LINK_MS))
    return token


async def check_setup(token: str) -> int:
    """The version of the link's record, if this is its token and there is no admin; NotFound otherwise."""
    kv = require_env("kv").kv
    entry = await kv.get(keys.CONTROL_SETUP)
    link = None if entry is None else decode(entry, SetupLink)
    fits = hmac.compare_digest(_hash(token), "" if link is None else link.token_hash)
    if entry is None or link is None or not fits or link.expires_at <= kv.now() or await find_admins():
        await note_refusal("sign-in", "the link of the first start is not valid")
        raise NotFound("This link is not valid or has expired; restart the server to get a new one.")
    return entry.version


async def make_first_admin(
    token: str,
    name: str,
    password: str,
    operations: Callable[[], Awaitable[tuple[Operation, ...]]] | None = None,
) -> User:
    """The first admin, and what was chosen beside, in the commit that ends the link."""
    version = await check_setup(token)
    return await create_user(
        name,
        Role.ADMIN,
        by=f"admin:{name}",
        reason="the one-time link of the first start",
        password=password,
        operations=operations,
        setup_version=version,
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
